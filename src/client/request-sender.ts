import { check, checkToken, isCount, toBaseUrl, toHeaderFields } from './client-options.ts'
import type { ClientResponse, Fetch, PlantClientOptions } from './client-options.ts'

/** The error with which a failed client call rejects. Aborted calls reject with their signal's reason instead. */
export class PlantStoreError extends Error {
  /** The HTTP status, or 0 if there was no response. */
  readonly status: number
  /** The error code, such as 40900. Undefined if there was no response, or if the response isn't from the service. */
  readonly error: number | undefined
  /** The `X-Request-Id` of the response, to search for in the log of the service. */
  readonly requestId: string | undefined
  /** Whether the create or delete may have taken effect, in the last attempt or an earlier one. */
  readonly isOutcomeUnknown: boolean

  /** Creates the error to throw for a failed call. */
  constructor(
    message: string,
    details: Readonly<Pick<PlantStoreError, 'status' | 'error' | 'requestId' | 'isOutcomeUnknown'>>,
    options?: Readonly<{ cause?: unknown }>,
  ) {
    super(message, options)
    this.status = details.status
    this.error = details.error
    this.requestId = details.requestId
    this.isOutcomeUnknown = details.isOutcomeUnknown
  }

  // A getter, because an own property would be printed with every error. Spelled out, because minifiers rename classes.
  override get name(): string {
    return 'PlantStoreError'
  }
}

interface ClientRequest<T> {
  readonly method: 'GET' | 'POST' | 'DELETE'
  /** Returns the path, relative to the base URL. Called before each attempt. */
  readonly path: () => string
  readonly body?: string
  /** Any of these signals cancels the request. */
  readonly signals: readonly (AbortSignal | undefined)[]
  /** Whether an earlier request of the same call may have taken effect. */
  readonly isOutcomeUnknown?: boolean
  /** Reads a successful response. Returns undefined or throws if the response can't have come from the service. */
  readonly read: (text: string, link: string | null) => T | undefined
  /** Called before the next attempt if an attempt timed out while the body of its response was arriving. */
  readonly onBodyTimeout?: () => void
}

/** Sends a request, retries it after temporary failures, and returns the result of `read`. */
export type RequestSender = <T>(request: ClientRequest<T>) => Promise<T>

/** What is known about an attempt, filled in step by step, because a timeout can end it at any step. */
interface Attempt {
  isSent: boolean
  isTimeout: boolean
  response?: ClientResponse
  /** The body of the response, if it's complete. */
  text?: string
  cause?: unknown
}

/** The backoff before the first retry. The backoff doubles with every retry. */
const MIN_DELAY_MS = 250
const MAX_DELAY_MS = 30_000
/** The longest delay that JavaScript timers support. Timers with a longer delay fire immediately. */
const MAX_TIMER_MS = 0x7fffffff
/** The statuses after which a retry can help. */
const TEMPORARY = [408, 429, 502, 503, 504]
/** Messages of the TypeErrors that engines throw for mistakes in code, and `fetch` for a body that has been read. */
const MISTAKE = / is not (a|an|iterable)\b|^Cannot |\bBigInt\b|\balready (been )?(read|used)\b/

/** @throws TypeError if an option is invalid */
export function createRequestSender(options: PlantClientOptions): RequestSender {
  const { token, timeoutMs = 20_000, retries = 4 } = options
  const baseUrl = toBaseUrl(options.url)
  const headers = toHeaderFields(options.headers)
  if (typeof token !== 'function') checkToken(token)
  check(options.fetch === undefined || typeof options.fetch === 'function', 'fetch must be a function')
  check(typeof timeoutMs === 'number' && timeoutMs > 0, 'timeoutMs must be a positive number of milliseconds')
  check(isCount(retries), 'retries must be a whole number, at least 0, or Infinity')
  const withTimeout = createTimeouts()

  async function attempt({ method, path, body, signals }: ClientRequest<unknown>): Promise<Attempt> {
    const result: Attempt = { isSent: false, isTimeout: false }
    result.isTimeout = await withTimeout(timeoutMs, signals, async (signal) => {
      const currentToken: unknown = typeof token === 'function' ? await token() : token
      checkToken(currentToken)
      throwIfAborted([signal])
      const fields: Record<string, string> = { ...headers, authorization: `Bearer ${currentToken}` }
      if (body !== undefined) fields['content-type'] = 'application/json'
      // Don't follow redirects: they may lead to another origin, which must not get the token.
      const init = { method, headers: fields, body: body ?? null, signal, redirect: 'manual' } as const
      const fetch: Fetch = options.fetch ?? globalThis.fetch
      const url = baseUrl + path()
      result.isSent = true
      try {
        result.response = await Promise.resolve(fetch(url, init)).catch((error: unknown) => {
          // In Jest, `fetch` can be Node's, which rejects the AbortSignal of jsdom.
          if (!/^TypeError: .*AbortSignal/.test(String(error))) throw error
          return fetch(url, { ...init, signal: null })
        })
        // Unlike the standard `text()`, some replacements keep the byte order mark.
        result.text = (await result.response.text()).replace(/^\uFEFF/, '')
      } catch (error) {
        if (signal.aborted) return
        if (isMistake(error)) throw error
        result.cause = error
      }
    })
    return result
  }

  return async (request) => {
    let isOutcomeUnknown = request.isOutcomeUnknown === true
    let canRenewToken = typeof token === 'function'
    for (let retry = 0; ;) {
      const result = await attempt(request)
      const outcome = classify(request, result)
      if ('value' in outcome) return outcome.value
      isOutcomeUnknown ||= outcome.mayHaveEffect
      if (outcome.status === 401 && canRenewToken) {
        canRenewToken = false
        continue
      }
      if (!outcome.isTemporary || retry >= retries || outcome.retryAfterMs > MAX_DELAY_MS) {
        const message = result.isTimeout ? `no response within ${timeoutMs} ms` : outcome.message
        throw new PlantStoreError(message, { ...outcome, isOutcomeUnknown }, result)
      }
      if (result.isTimeout && result.response !== undefined) request.onBodyTimeout?.()
      const backoffMs = Math.max(MIN_DELAY_MS * 2 ** retry++, outcome.retryAfterMs) * (1 + Math.random())
      await withTimeout(Math.min(backoffMs, MAX_DELAY_MS), request.signals, () => new Promise(() => undefined))
    }
  }
}

/** Determines what an attempt means: the value that its response contains, or why it failed. */
function classify<T>({ method, read }: ClientRequest<T>, { isSent, response, text }: Attempt) {
  const isWrite = method !== 'GET'
  if (response === undefined || text === undefined) {
    const details = { status: 0, error: undefined, requestId: undefined, message: 'no response' }
    return { ...details, mayHaveEffect: isWrite && isSent, isTemporary: true, retryAfterMs: 0 }
  }
  const { status, headers } = response
  let body: unknown
  try {
    const value = status === (method === 'DELETE' ? 204 : 200) ? read(text, headers.get('Link')) : undefined
    if (value !== undefined) return { value }
    body = JSON.parse(text)
  } catch {
    // The text isn't JSON, or it isn't what the service would have sent.
  }
  const { error, message } = (body ?? {}) as Readonly<Record<string, unknown>>
  // Responses of proxies and of other services don't count as errors of this service.
  const isOwn = typeof message === 'string' && typeof error === 'number' && Math.trunc(error / 100) === status
  const isRejected = status < 500 && !(status >= 200 && status < 300)
  const hadNoEffect = isRejected || status === 501 || (isOwn && error === 50300)
  return {
    status,
    error: isOwn ? error : undefined,
    requestId: headers.get('X-Request-Id') ?? undefined,
    message: isOwn ? message : `unexpected response (status ${status}): it isn't from plant-store, or it's incomplete`,
    mayHaveEffect: isWrite && !hadNoEffect,
    isTemporary: TEMPORARY.includes(status),
    retryAfterMs: parseRetryAfter(headers.get('Retry-After') ?? ''),
  }
}

/** Parses a number of seconds, or a date. Returns the delay in milliseconds, or 0 if the text is neither. */
function parseRetryAfter(text: string): number {
  return /^\d+$/.test(text) ? Number(text) * 1000 : Math.max(0, Date.parse(text) - Date.now()) || 0
}

/** Whether an error of `fetch` is due to the request or to the code of a custom `fetch`, not to a lost connection. */
function isMistake(error: unknown): boolean {
  const { name, message = '', cause } = Object(error) as Partial<Error & { cause: { code?: unknown } }>
  if (cause !== undefined) return cause.code === 'UND_ERR_INVALID_ARG'
  return name === 'ReferenceError' || (name === 'TypeError' && MISTAKE.test(message))
}

/**
 * Creates a function that runs another one until it ends or times out, and resolves to whether it has timed out.
 * Rejects when one of the signals is aborted. Then, and after a timeout, the function's own signal is aborted, too, but
 * the promise settles even if a custom `fetch` ignores that signal.
 *
 * `AbortSignal.any` can't replace this: it leaks up to 2.7 kB per call in Node 20 and 22, and many versions of jsdom
 * don't have it.
 */
function createTimeouts() {
  // One listener per signal, however many calls share it, because Node 20 prints a warning if there are eleven.
  const callbacks = new WeakMap<AbortSignal, Set<() => void>>()
  const onAbort = ({ target }: Event): void => callbacks.get(target as AbortSignal)?.forEach((callback) => callback())

  return async (
    ms: number,
    optionalSignals: readonly (AbortSignal | undefined)[],
    run: (signal: AbortSignal) => Promise<void>,
  ): Promise<boolean> => {
    const signals = optionalSignals.filter((signal) => signal !== undefined)
    throwIfAborted(signals)
    const controller = new AbortController()
    const stop = (): void => controller.abort()
    const stopped = new Promise((resolve) => controller.signal.addEventListener('abort', resolve))
    const timer = setTimeout(stop, Math.min(ms, MAX_TIMER_MS))
    try {
      for (const signal of signals) {
        // A listener that was already added is not added again.
        signal.addEventListener('abort', onAbort)
        callbacks.set(signal, (callbacks.get(signal) ?? new Set()).add(stop))
      }
      await Promise.race([stopped, run(controller.signal)])
      throwIfAborted(signals)
      return controller.signal.aborted
    } finally {
      clearTimeout(timer)
      for (const signal of signals) {
        const remaining = callbacks.get(signal)
        remaining?.delete(stop)
        if (remaining?.size === 0) signal.removeEventListener('abort', onAbort)
      }
    }
  }
}

/** Throws the reason of the first signal that is aborted. Older versions of jsdom don't have `signal.throwIfAborted`. */
export function throwIfAborted(signals: readonly (AbortSignal | undefined)[]): void {
  for (const signal of signals) if (signal?.aborted) throw signal.reason
}
