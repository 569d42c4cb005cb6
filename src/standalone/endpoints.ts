import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'
import { HTTP_ERRORS, HttpError, JSON_HEADERS } from '../http/errors.ts'
import { checkHeader } from '../http/header-fields.ts'
import { send, type HttpResponse } from '../http/respond.ts'
import { openapi } from '../openapi/openapi.ts'
import { withDeadline } from '../plants/checked-store.ts'
import type { MaybePromise, Store } from '../plants/store.ts'
import { describeError, log } from './log.ts'
import type { LoggedResponse } from './request-log.ts'

/** Responds to GET requests for a path of the standalone server. */
export type Endpoint = (request: IncomingMessage) => MaybePromise<HttpResponse>

const ALLOW = ['Allow', 'GET, HEAD, OPTIONS']
const HEALTH_CHECKS = ['/livez', '/readyz']

/** How long the result of a ping is cached. Health checks need no token, so anyone could put load on the store. */
const PING_INTERVAL_MS = 1000
/** Together with the interval, it's less than 2 s, so a reported state is never older than that. */
const PING_TIMEOUT_MS = 900

const LIVE: HttpResponse = { status: 200, headers: JSON_HEADERS, body: '{"status":"live"}' }
const READY: HttpResponse = { status: 200, headers: JSON_HEADERS, body: '{"status":"ready"}' }
const DRAINING: HttpResponse = new HttpError('storeUnavailable', 'The service is shutting down.')

/**
 * Creates the function that checks readiness. While the store isn't ready, the function pings it every second, so that a
 * recovery is logged even without health checks.
 */
export function createReadiness(store: Store, isDraining: () => boolean): () => Promise<HttpResponse> {
  let wasReady = true
  let lastPingAt = -Infinity
  let latestPing: Promise<void>
  let timer: NodeJS.Timeout | undefined

  async function pingStore(): Promise<void> {
    try {
      await withDeadline(store.ping?.(), PING_TIMEOUT_MS, 'The store')
      if (!wasReady) log('ready')
      wasReady = true
    } catch (error) {
      if (wasReady) log('unready', { reason: describeError(error) })
      wasReady = false
      timer = setTimeout(() => isDraining() || startPing(), PING_INTERVAL_MS).unref()
    }
  }

  function startPing(): void {
    clearTimeout(timer)
    lastPingAt = performance.now()
    latestPing = pingStore()
  }

  return async function checkReadiness() {
    if (isDraining()) return DRAINING
    if (performance.now() - lastPingAt >= PING_INTERVAL_MS) startPing()
    await latestPing
    return wasReady ? READY : HTTP_ERRORS.storeUnavailable
  }
}

export const createHealthChecks = (checkReadiness: Endpoint): ReadonlyMap<string, Endpoint> =>
  new Map<string, Endpoint>([
    ['/livez', () => LIVE],
    ['/readyz', checkReadiness],
  ])

/** The description, as the standalone server serves it. The URL is relative to that of the description. */
export function createDescription(): Endpoint {
  const body = JSON.stringify({ ...openapi, servers: [{ url: '.' }] })
  return createDocument(['Content-Type', 'application/json'], body)
}

/** Creates the endpoint for a response that never changes. Browsers don't use a copy from an earlier version. */
export function createDocument(headers: HttpResponse['headers'], body: string): Endpoint {
  const response = { status: 200, headers: [...headers, 'Cache-Control', 'no-cache'], body }
  return () => response
}

/** Called after each response to a request that isn't a health check. */
type OnResponse = (event: LoggedResponse) => void

/**
 * Creates a listener that responds to requests for the endpoints.
 * @param otherwise handles the requests for all other paths
 */
export function createEndpointListener(
  endpoints: ReadonlyMap<string, Endpoint>,
  otherwise: RequestListener,
  onResponse?: OnResponse,
): RequestListener {
  return (request, response) => {
    const path = pathOf(request.url!)
    const endpoint = endpoints.get(path)
    if (endpoint === undefined) return otherwise(request, response)
    void reply(request, response, respond(endpoint, request), path, onResponse)
  }
}

export async function reply(
  request: IncomingMessage,
  response: ServerResponse,
  result: MaybePromise<HttpResponse>,
  path?: string,
  onResponse?: OnResponse,
): Promise<void> {
  const startedAt = performance.now()
  const awaited = await result
  const { bytes, complete } = await send(request, response, awaited)
  if (onResponse === undefined || HEALTH_CHECKS.includes(path!)) return
  const { status, error } = awaited
  const durationMs = performance.now() - startedAt
  onResponse({ request, resource: path, owner: undefined, status, error, bytes, complete, durationMs })
}

async function respond(endpoint: Endpoint, request: IncomingMessage): Promise<HttpResponse> {
  try {
    checkHeader(request)
    if (request.method === 'OPTIONS') return { status: 204, headers: ALLOW, body: undefined }
    if (request.method === 'GET' || request.method === 'HEAD') return await endpoint(request)
    return new HttpError('methodNotAllowed', undefined, ALLOW)
  } catch (error) {
    // Endpoints throw nothing, and `checkHeader` throws only HttpErrors.
    return error as HttpError
  }
}

/** Returns the path of a request target, without the scheme and authority of an absolute form. */
export const pathOf = (target: string): string => target.replace(/^https?:\/\/[^/?#@]+(?=\/)/i, '').replace(/\?.*/, '')
