/** The options of {@link createPlantClient}. */
export interface PlantClientOptions {
  /**
   * The URL of the service, without `/plants`, such as `https://plants.example/api`. It can't contain a user name or a
   * password. Its query and fragment are ignored.
   */
  readonly url: string | URL
  /**
   * The bearer token or, for tokens that expire, a function that returns the current token. The function is called
   * before each attempt, and once more if the service rejects the token (401). If the function throws, the call rejects
   * with the same error.
   */
  readonly token: string | (() => string | Promise<string>)
  /** Sends the requests, for example to log them: a function like `fetch`. @default globalThis.fetch */
  readonly fetch?: Fetch | undefined
  /** Timeout of each attempt, in milliseconds: a positive number or Infinity. @default 20_000 */
  readonly timeoutMs?: number | undefined
  /** How many times to retry a request that failed for a temporary reason: 0 or more, or Infinity. @default 4 */
  readonly retries?: number | undefined
  /** Additional header fields for all requests. `fetch` sets the fields that describe the body and the connection. */
  readonly headers?: Readonly<Record<string, string>> | undefined
}

/** A function like `fetch`: the global one, `undici.fetch`, node-fetch, or a mock. */
export type Fetch = (url: string, init: ClientRequestInit) => Promise<ClientResponse>

/** What the client passes to `fetch`. */
export interface ClientRequestInit {
  readonly method: 'GET' | 'POST' | 'DELETE'
  readonly headers: Record<string, string>
  readonly body: string | null
  readonly signal: AbortSignal | null
  readonly redirect: 'manual'
}

/** What the client needs of a response of `fetch`. */
export interface ClientResponse {
  readonly status: number
  readonly headers: { get(name: string): string | null }
  text(): Promise<string>
}

/** Headers that describe the body or the connection. Node's `fetch` rejects requests that set them. */
const FETCH_HEADERS = ['content-length', 'expect', 'keep-alive', 'transfer-encoding', 'upgrade']

/** 0, and the ports that browsers and Node block. https://fetch.spec.whatwg.org/#port-blocking */
const BLOCKED_PORTS = [
  0, 1, 7, 9, 11, 13, 15, 17, 19, 20, 21, 22, 23, 25, 37, 42, 43, 53, 69, 77, 79, 87, 95, 101, 102, 103, 104, 109, 110,
  111, 113, 115, 117, 119, 123, 135, 137, 139, 143, 161, 179, 389, 427, 465, 512, 513, 514, 515, 526, 530, 531, 532,
  540, 548, 554, 556, 563, 587, 601, 636, 989, 990, 993, 995, 1719, 1720, 1723, 2049, 3659, 4045, 4190, 5060, 5061,
  6000, 6566, 6665, 6666, 6667, 6668, 6669, 6679, 6697, 10080,
]

/** @throws TypeError with the message if the condition is false; no message contains a token, a header or a URL */
export function check(condition: boolean, message: string): asserts condition {
  if (!condition) throw new TypeError(message)
}

/** @throws TypeError if an object has a member with another name, such as a misspelled option */
export function checkNames(options: object, names: readonly string[]): void {
  for (const name of Object.keys(options)) check(names.includes(name), `unknown option "${name}"`)
}

/** Whether a value is a whole number, 0 or more, or Infinity. */
export function isCount(value: unknown): value is number {
  return value === Infinity || (Number.isSafeInteger(value) && (value as number) >= 0)
}

/** @param token may be any value, such as undefined from an unset environment variable */
export function checkToken(token: unknown): asserts token is string {
  const isToken = typeof token === 'string' && /^[\w\-.~+/]+=*$/.test(token)
  check(isToken, 'token must be a bearer token (RFC 6750)')
}

/** Returns the URL to which paths are appended. It ends with a slash. */
export function toBaseUrl(url: string | URL): string {
  let parsed = new URL('about:blank')
  try {
    parsed = new URL(url)
  } catch {
    // The original error contains the URL, which may contain a password.
  }
  const { protocol, username, password, port, origin, pathname } = parsed
  check(/^https?:$/.test(protocol), 'url must be an absolute URL that begins with http:// or https://')
  check(username + password === '', "url can't contain a user name or a password: fetch rejects them")
  check(port === '' || !BLOCKED_PORTS.includes(Number(port)), `url can't have port ${port}, which fetch blocks`)
  return origin + pathname.replace(/\/?$/, '/')
}

/** Returns the headers with lower-case names. */
export function toHeaderFields(headers: unknown = {}): Readonly<Record<string, string>> {
  // `Object.entries` would silently return nothing for a Headers object or a Map.
  const isRecord = typeof headers === 'object' && headers !== null && !(Symbol.iterator in headers)
  check(isRecord, 'headers must be an object of strings')
  const fields = Object.entries(headers).map(([name, value]: [string, unknown]) => {
    // The message doesn't contain the name, which may be a whole header by mistake.
    const isName = /^[\w!#$%&'*+\-.^`|~]+$/.test(name)
    const isValue = typeof value === 'string' && /^[\t\x20-\x7e\x80-\xff]*$/.test(value.trim())
    check(isName && isValue, 'headers must have names that are valid in HTTP, and strings of Latin-1 characters')
    check(!FETCH_HEADERS.includes(name.toLowerCase()), `headers can't contain ${name}: fetch sets it, or forbids it`)
    return [name.toLowerCase(), value] as const
  })
  return Object.fromEntries(fields)
}
