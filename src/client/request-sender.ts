import { PlantStoreError } from './plant-store-error.ts'

/** A function that returns the current token. */
export type TokenSource = () => string | Promise<string>

interface SenderOptions {
  readonly baseUrl: URL
  readonly token: string | TokenSource
  readonly fetch: ((url: string, init: RequestInit) => Promise<Response>) | undefined
  readonly timeoutMs: number
  readonly retries: number
  readonly headers: Readonly<Record<string, string>> | undefined
}

interface ClientRequest<T> {
  readonly method: 'GET' | 'POST' | 'DELETE'
  /** The path, relative to the base URL. */
  readonly path: string
  readonly body?: string
  readonly signal: AbortSignal | undefined
  /** Whether an earlier request of the same call may have taken effect. */
  readonly isOutcomeUnknown?: boolean
  /** Reads a successful response. Returns undefined or throws if the response can't have come from the service. */
  readonly read: (text: string, response: Response) => T | undefined
}

/** Sends a request, retries it after temporary failures, and returns the result of `read`. */
export type RequestSender = <T>(request: ClientRequest<T>) => Promise<T>

/** The longest delay that JavaScript timers support. Timers with a longer delay fire immediately. */
const MAX_TIMER_MS = 2 ** 31 - 1
/** The backoff before the first retry. The backoff doubles with every retry. */
const MIN_DELAY_MS = 250
const MAX_DELAY_MS = 30_000

/** @throws TypeError if the token or a header is malformed, or if the URL contains a password */
export function createRequestSender(options: SenderOptions): RequestSender {
  const { baseUrl, token, timeoutMs, retries, headers } = options
  // Throw errors in the options now. Otherwise, `fetch` would throw them on the first request, where they would look
  // like network failures.
  new Request(baseUrl, { headers: createHeaders(typeof token === 'function' ? 'token' : token) })

  /** @param currentToken may be any value, such as undefined from an unset environment variable */
  function createHeaders(currentToken: unknown): Headers {
    // Check the token before `Headers` does, because the error message of `Headers` would contain the token.
    if (typeof currentToken !== 'string' || !/^[\w\-.~+/]+=*$/.test(currentToken))
      throw new TypeError('token must be a bearer token (RFC 6750)')
    const fields = new Headers(headers)
    fields.set('Authorization', `Bearer ${currentToken}`)
    return fields
  }

  return async ({ method, path, body, signal, isOutcomeUnknown = false, read }) => {
    let canRenewToken = typeof token === 'function'
    for (let retry = 0; ;) {
      let isSent = false
      let cause: unknown
      const reply = await withTimeout(timeoutMs, signal, async (attemptSignal) => {
        const fields = createHeaders(typeof token === 'function' ? await token() : token)
        if (body !== undefined) fields.set('Content-Type', 'application/json')
        attemptSignal.throwIfAborted()
        isSent = true
        try {
          const fetch = options.fetch ?? globalThis.fetch
          const init = { method, headers: fields, body: body ?? null, signal: attemptSignal }
          // Don't follow redirects: they may lead to another origin, which must not get the token.
          const response = await fetch(new URL(path, baseUrl).href, { ...init, redirect: 'manual' })
          return { response, text: await response.text() }
        } catch (error) {
          cause = error
          return undefined
        }
      })

      const { response, text = '' } = reply ?? {}
      const { status, ok } = response ?? { status: 0, ok: false }
      if (status === (method === 'DELETE' ? 204 : 200)) {
        const result = parseSafely(() => read(text, response!))
        if (result !== undefined) return result
      }
      if (status === 401 && canRenewToken) {
        canRenewToken = false
        continue
      }
      const { error, message } = parseError(text, status)
      const hadNoEffect = response ? error === 50300 || status === 501 || (status < 500 && !ok) : !isSent
      isOutcomeUnknown ||= method !== 'GET' && !hadNoEffect
      const isTemporary = !response || [408, 429, 502, 503, 504].includes(status)
      if (!isTemporary || retry >= retries) {
        const noResponse = cause === undefined ? `no response within ${timeoutMs} ms` : 'no response'
        const unexpected = `unexpected response (status ${status}): it isn't from plant-store, or it's incomplete`
        throw new PlantStoreError(
          message ?? (response ? unexpected : noResponse),
          { status, error, requestId: response?.headers.get('X-Request-Id') ?? undefined, isOutcomeUnknown },
          cause === undefined ? {} : { cause },
        )
      }
      const backoffMs = Math.max(MIN_DELAY_MS * 2 ** retry++, parseRetryAfter(response?.headers.get('Retry-After')))
      const delayMs = Math.min(backoffMs * (1 + Math.random()), MAX_DELAY_MS)
      await withTimeout(delayMs, signal, () => new Promise(() => undefined))
    }
  }
}

/**
 * Resolves to the result of a function, or to undefined after a timeout. Rejects when the caller's signal is aborted.
 * In both cases, the function's own signal is aborted, too, but the promise settles even if a custom `fetch` ignores
 * that signal. Always removes its timer and its listener, unlike `AbortSignal.any` in some Node versions.
 */
async function withTimeout<T>(
  ms: number,
  signal: AbortSignal | undefined,
  run: (signal: AbortSignal) => Promise<T>,
): Promise<T | undefined> {
  signal?.throwIfAborted()
  const controller = new AbortController()
  return new Promise((resolve, reject) => {
    function cleanUp(): void {
      clearTimeout(timer)
      signal?.removeEventListener('abort', onAbort)
    }
    function onAbort(): void {
      cleanUp()
      // eslint-disable-next-line @typescript-eslint/prefer-promise-reject-errors -- the reason can be any value
      reject(signal!.reason)
      controller.abort(signal!.reason)
    }
    function onTimeout(): void {
      cleanUp()
      resolve(undefined)
      controller.abort()
    }
    const timer = setTimeout(onTimeout, Math.min(ms, MAX_TIMER_MS))
    signal?.addEventListener('abort', onAbort)
    void run(controller.signal).then(resolve, reject).finally(cleanUp)
  })
}

/** Returns the code and message of an error response, or neither if the response isn't from the service. */
function parseError(text: string, status: number): Readonly<{ error?: number; message?: string }> {
  const body = parseSafely(() => JSON.parse(text) as unknown) ?? {}
  const { error, message } = body as Readonly<Record<string, unknown>>
  const isError = typeof message === 'string' && typeof error === 'number' && Math.trunc(error / 100) === status
  return isError ? { error, message } : {}
}

function parseSafely<T>(parse: () => T): T | undefined {
  try {
    return parse()
  } catch {
    return undefined
  }
}

/**
 * Parses a `Retry-After` header: a number of seconds, or a date. Returns the delay in milliseconds, or 0 if the header
 * is missing or malformed.
 */
function parseRetryAfter(value: string | null = null): number {
  const ms = Number(value) * 1000
  return (Number.isNaN(ms) ? Date.parse(value!) - Date.now() : ms) || 0
}
