import { createHash } from 'node:crypto'
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'
import { HTTP_ERRORS, HttpError } from '../http/errors.ts'
import { readHeaderFields } from '../http/header-fields.ts'
import { send, type HttpResponse } from '../http/respond.ts'
import { openapi } from '../openapi/openapi.ts'
import type { MaybePromise } from '../plants/store.ts'
import type { Readiness } from './readiness.ts'
import type { LoggedResponse } from './request-log.ts'

/** Responds to GET requests for a path of the standalone server. */
export type Endpoint = (request: IncomingMessage) => MaybePromise<HttpResponse>

const ALLOW = { Allow: 'GET, HEAD, OPTIONS' }
const HEALTH_CHECKS = ['/livez', '/readyz']

const READINESS_RESPONSES: Readonly<Record<Readiness, HttpResponse>> = {
  ready: { status: 200, headers: {}, body: '{"status":"ready"}' },
  unready: HTTP_ERRORS.storeUnavailable,
  draining: new HttpError('storeUnavailable', 'The service is shutting down.'),
}

export const createHealthChecks = (checkReadiness: () => Promise<Readiness>): ReadonlyMap<string, Endpoint> =>
  new Map<string, Endpoint>([
    ['/livez', () => ({ status: 200, headers: {}, body: '{"status":"live"}' })],
    ['/readyz', async () => READINESS_RESPONSES[await checkReadiness()]],
  ])

/** The description, as the standalone server serves it. The URL is relative to that of the description. */
export function createDescription(): Endpoint {
  const body = JSON.stringify({ ...openapi, servers: [{ url: '.' }] })
  return createDocument({ 'Content-Type': 'application/json' }, body)
}

/** Creates the endpoint for a response that never changes. Clients with a cached copy get 304. */
export function createDocument(headers: HttpResponse['headers'], body: string): Endpoint {
  const etag = `"${createHash('sha256').update(body).digest('base64url')}"`
  // Browsers revalidate each file when a page is loaded, so that all files have the same version.
  const fields = { ...headers, 'Cache-Control': 'no-cache', ETag: etag }
  // If-None-Match uses the weak comparison (RFC 9110 section 13.1.2), so a `W/` prefix doesn't matter.
  return ({ headers: { 'if-none-match': tags = '' } }) =>
    tags === '*' || tags.includes(etag)
      ? { status: 304, headers: fields, body: undefined }
      : { status: 200, headers: fields, body }
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
    readHeaderFields(request)
    if (request.method === 'OPTIONS') return { status: 204, headers: ALLOW, body: undefined }
    if (request.method === 'GET' || request.method === 'HEAD') return await endpoint(request)
    return new HttpError('methodNotAllowed', undefined, ALLOW)
  } catch (error) {
    // Endpoints throw nothing, and `readHeaderFields` throws only HttpErrors.
    return error as HttpError
  }
}

/** Returns the path of a request target as the router of the service reads it: percent-decoded once. */
export function pathOf(target: string): string {
  const [path] = target.replace(/^https?:\/\/[^/?#@]+(?=\/)/i, '').split('?', 1) as [string]
  if (!path.includes('%')) return path
  try {
    return decodeURIComponent(path.replaceAll(/%2f/gi, '%252F'))
  } catch {
    return path
  }
}
