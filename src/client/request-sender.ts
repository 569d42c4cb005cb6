import {
  check,
  checkToken,
  isCount,
  toBaseUrl,
  toHeaderFields,
  type ClientRequestInit,
  type ClientResponse,
  type Fetch,
  type PlantClientOptions,
} from './client-options.ts'
import { createTimeouts, throwIfAborted } from './timeouts.ts'

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
  readonly signals: readonly AbortSignal[]
  /** Whether an earlier request of the same call may have taken effect. */
  readonly isOutcomeUnknown?: boolean
  /** Reads a successful response. Returns undefined or throws if the response can't have come from the service. */
  readonly read: (text: string, link: string | null) => T | undefined
  /** Called before the next attempt if an attempt timed out while the body of its response was arriving. */
  readonly onBodyTimeout?: () => void
}

/** Sends a request, retries it after temporary failures, and returns the result of `read`. */
export type RequestSender = <T>(request: ClientRequest<T>) => Promise<T>

/** What is known about an attempt, filled in step by step. */
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

/** Messages of the TypeErrors that engines throw for mistakes in code, and `fetch` for a used or foreign object. */
const MISTAKE =
  / is not (an?|iterable|defined)\b|\b(is|of) (undefined|null)\b|^Cannot (read|set|convert)|BigInt|circular|disturbed|already (been )?(read|used)/

/** @throws TypeError if an option is invalid */
export function createRequestSender(options: PlantClientOptions): RequestSender {
  const { token, timeoutMs = 20_000, retries = 4 } = options
  const baseUrl = toBaseUrl(options)
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
      const fetch = options.fetch ?? (globalThis as Partial<typeof globalThis>).fetch
      check(fetch !== undefined, 'there is no global fetch: pass the option `fetch`')
      const url = baseUrl + path()
      result.isSent = true
      try {
        result.response = await callFetch(fetch, url, init)
        // Unlike the standard `text()`, some replacements keep the byte order mark.
        result.text = (await result.response.text()).replace(/^\uFEFF/, '')
      } catch (error) {
        if (signal.aborted) return
        throwMistake(error)
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
      const { status, error, requestId, retryAfterMs } = outcome
      isOutcomeUnknown ||= outcome.mayHaveEffect
      if (status === 401 && canRenewToken) {
        canRenewToken = false
        continue
      }
      if (!outcome.isTemporary || retry >= retries || retryAfterMs > MAX_DELAY_MS) {
        const message = outcome.message ?? (result.isTimeout ? `no response within ${timeoutMs} ms` : 'no response')
        const cause = 'cause' in result ? { cause: result.cause } : {}
        throw new PlantStoreError(message, { status, error, requestId, isOutcomeUnknown }, cause)
      }
      if (result.isTimeout && result.response !== undefined) request.onBodyTimeout?.()
      const backoffMs = Math.max(MIN_DELAY_MS * 2 ** retry++, retryAfterMs) * (1 + Math.random())
      await withTimeout(Math.min(backoffMs, MAX_DELAY_MS), request.signals, () => new Promise(() => undefined))
    }
  }
}

interface Failure extends Pick<PlantStoreError, 'status' | 'error' | 'requestId'> {
  /** Undefined if there was no response. */
  readonly message: string | undefined
  /** Whether the attempt may have created or deleted a plant. */
  readonly mayHaveEffect: boolean
  /** Whether a retry can help. */
  readonly isTemporary: boolean
  readonly retryAfterMs: number
}

/** Determines what an attempt means: the value that its response contains, or why it failed. */
function classify<T>({ method, read }: ClientRequest<T>, attempt: Attempt): { readonly value: T } | Failure {
  const { response, text, isTimeout } = attempt
  if (response === undefined || text === undefined || isTimeout) {
    const mayHaveEffect = method !== 'GET' && attempt.isSent
    const noResponse = { status: 0, error: undefined, requestId: undefined, message: undefined }
    return { ...noResponse, mayHaveEffect, isTemporary: true, retryAfterMs: 0 }
  }
  const { status, headers } = response
  if (status === (method === 'DELETE' ? 204 : 200)) {
    const value = parseSafely(() => read(text, headers.get('Link')))
    if (value !== undefined) return { value }
  }
  const body = parseSafely(() => JSON.parse(text) as Readonly<Record<string, unknown>>)
  const { error, message } = body ?? {}
  // Responses of proxies and of other services don't count as errors of this service.
  const isOwn = typeof message === 'string' && typeof error === 'number' && Math.trunc(error / 100) === status
  const isRejected = status < 500 && !(status >= 200 && status < 300)
  const hadNoEffect = isRejected || status === 501 || (isOwn && error === 50300)
  return {
    status,
    error: isOwn ? error : undefined,
    requestId: headers.get('X-Request-Id') ?? undefined,
    message: isOwn ? message : `unexpected response (status ${status}): it isn't from plant-store, or it's incomplete`,
    mayHaveEffect: method !== 'GET' && !hadNoEffect,
    isTemporary: [408, 429, 502, 503, 504].includes(status),
    retryAfterMs: parseRetryAfter(headers.get('Retry-After') ?? ''),
  }
}

function parseSafely<T>(parse: () => T): T | undefined {
  try {
    return parse()
  } catch {
    return undefined
  }
}

/** Parses a number of seconds, or a date. Returns the delay in milliseconds, or 0 if the text is neither. */
function parseRetryAfter(text: string): number {
  return /^\d+$/.test(text) ? Number(text) * 1000 : Math.max(0, Date.parse(text) - Date.now()) || 0
}

/** Calls `fetch`, without the signal if it rejects the signal: in Jest, `fetch` may be Node's and AbortSignal jsdom's. */
async function callFetch(fetch: Fetch, url: string, init: ClientRequestInit): Promise<ClientResponse> {
  try {
    return await fetch(url, init)
  } catch (error) {
    const isSignalRejected = init.signal?.aborted === false && /^TypeError: .*AbortSignal/.test(String(error))
    if (!isSignalRejected) throw error
    return fetch(url, { ...init, signal: null })
  }
}

/**
 * Throws if `fetch` failed because of a mistake in the code of a custom `fetch` or in the request itself, rather than
 * because the connection was lost.
 */
function throwMistake(error: unknown): void {
  const { name, message = '', cause } = Object(error) as Partial<Error & { cause: Partial<Error & { code: unknown }> }>
  if (cause === undefined && /^(Type|Reference)Error$/.test(name ?? '') && MISTAKE.test(message)) throw error
  if (cause?.message === 'bad port' || cause?.code === 'UND_ERR_INVALID_ARG' || cause?.code === 'UND_ERR_NOT_SUPPORTED')
    throw new TypeError(`fetch can't send this request: ${cause.message}`, { cause: error })
}
