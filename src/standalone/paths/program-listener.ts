import { createHash } from 'node:crypto'
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'
import { sendResponse, type OnResponse } from '../http-server.ts'
import { HTTP_ERRORS, HttpError } from '../../http/errors.ts'
import { readHeaderFields } from '../../http/header-fields.ts'
import { createResponse, jsonResponse, type HttpResponse } from '../../http/respond.ts'
import type { MaybePromise } from '../../maybe-promise.ts'
import { methodsOf, RESOURCE_PATHS } from '../../operations.ts'
import { createProgramRouter, ASTERISK_PATH, type FindResource } from '../requests.ts'
import { programDescription } from './program-description.ts'
import type { Readiness } from './readiness.ts'

/** The methods that each of the standalone server's own paths supports. */
export const PROGRAM_METHODS: readonly string[] = ['GET', 'HEAD', 'OPTIONS']

const ALL_METHODS = new Set([...PROGRAM_METHODS, ...RESOURCE_PATHS.flatMap(methodsOf)])

/**
 * The methods in the response to `OPTIONS *`, on the admin port too. OPTIONS comes last, as it does for a single path.
 */
export const SERVER_METHODS: readonly string[] = [...ALL_METHODS]
  .filter((method) => method !== 'OPTIONS')
  .concat('OPTIONS')

const ALLOW_FIELD: readonly string[] = ['Allow', PROGRAM_METHODS.join(', ')]
const SERVER_ALLOW_FIELD: readonly string[] = ['Allow', SERVER_METHODS.join(', ')]
const LIVE_RESPONSE = jsonResponse({ status: 'live' })

const READINESS_RESPONSES: Readonly<Record<Readiness, HttpResponse>> = {
  ready: jsonResponse({ status: 'ready' }),
  unready: HTTP_ERRORS.storeUnavailable,
  draining: new HttpError('storeUnavailable', 'The service is shutting down.'),
}

type GetHandler = (request: IncomingMessage) => MaybePromise<HttpResponse>
/** The handler is undefined for `*`, which supports only OPTIONS. */
type GetRoutes = readonly (readonly [path: string, get: GetHandler | undefined])[]

const SERVER_ROUTE: GetRoutes[0] = [ASTERISK_PATH, undefined]

export interface ProgramOptions {
  readonly checkReadiness: () => Promise<Readiness>
  readonly documents?: ReadonlyMap<string, StaticDocument>
  /** Called after each response, except those to health checks. */
  readonly onResponse?: OnResponse | undefined
}

/**
 * Creates the listener for the service port, which serves the health checks, the OpenAPI description and the web UI.
 * @param notFound handles the requests for all other paths
 */
export function createProgramListener(
  options: ProgramOptions,
  findResource: FindResource,
  notFound: RequestListener,
): RequestListener {
  const description = jsonResponse(programDescription)
  const documents = [['/openapi.json', description] as const, ...(options.documents ?? [])]
  const documentRoutes = documents.map(([path, document]) => [path, createDocumentHandler(document)] as const)
  const fallback = createGetListener([...documentRoutes, SERVER_ROUTE], findResource, notFound, options.onResponse)
  return createGetListener(createProbeRoutes(options.checkReadiness), findResource, fallback)
}

/**
 * Creates the listener of the admin port, with the health checks and the metrics in the Prometheus text format. None of
 * them requires a token.
 */
export function createAdminListener(
  checkReadiness: () => Promise<Readiness>,
  formatMetrics: (isReady: boolean) => string,
): RequestListener {
  const getMetrics = async (): Promise<HttpResponse> => {
    const body = formatMetrics((await checkReadiness()) === 'ready')
    return { ...createResponse(200, [], body), contentType: 'text/plain; version=0.0.4; charset=utf-8' }
  }
  const message = 'No such resource. The admin port has /livez, /readyz and /metrics.'
  const routes: GetRoutes = [...createProbeRoutes(checkReadiness), ['/metrics', getMetrics]]
  const findResource = createProgramRouter(routes.map(([path]) => path))
  return createGetListener([...routes, SERVER_ROUTE], findResource, (request, response) => {
    sendResponse(request, response, new HttpError('pathNotFound', message))
  })
}

function createProbeRoutes(checkReadiness: () => Promise<Readiness>): GetRoutes {
  return [
    ['/livez', () => LIVE_RESPONSE],
    ['/readyz', async () => READINESS_RESPONSES[await checkReadiness()]],
  ]
}

function createGetListener(
  routes: GetRoutes,
  findResource: FindResource,
  notFound: RequestListener,
  onResponse?: OnResponse,
) {
  const handlersByPath = new Map(routes)
  return (request: IncomingMessage, response: ServerResponse): void => {
    const path = findResource(request)?.path
    if (path === undefined || !handlersByPath.has(path)) notFound(request, response)
    else
      void handleRequest(handlersByPath.get(path), request).then((result) =>
        sendResponse(request, response, result, onResponse, path),
      )
  }
}

async function handleRequest(handler: GetHandler | undefined, request: IncomingMessage): Promise<HttpResponse> {
  const headers = handler === undefined ? SERVER_ALLOW_FIELD : ALLOW_FIELD
  try {
    readHeaderFields(request.rawHeaders)
    if (handler === undefined || request.method === 'OPTIONS')
      return { ...createResponse(204, headers, undefined), allowsCaching: true }
    if (request.method === 'GET' || request.method === 'HEAD') return await handler(request)
    return new HttpError('methodNotAllowed', undefined, headers)
  } catch (error) {
    // Handlers and `readHeaderFields` throw only HttpErrors.
    return error as HttpError
  }
}

export type StaticDocument = HttpResponse & { readonly body: string }

/**
 * Creates the GET handler for a response that never changes. Clients with a cached copy get 304 (RFC 9110 section
 * 13.1.2).
 */
export function createDocumentHandler(document: StaticDocument): (request: IncomingMessage) => HttpResponse {
  // For each response, Node would copy a string body to join it with the header. It doesn't copy a Buffer.
  const body = Buffer.from(document.body, 'latin1')
  const etag = `"${createHash('sha256').update(body).digest('base64url')}"`
  const headers = [...document.headers, 'ETag', etag]
  const fullResponse: HttpResponse = { ...document, headers, body, allowsCaching: true }
  const notModified: HttpResponse = { ...createResponse(304, headers, undefined), allowsCaching: true }

  return function getDocument({ headers: { 'if-none-match': ifNoneMatch = '' } }) {
    // If-None-Match uses the weak comparison, so a `W/` prefix doesn't matter. An entity tag can't contain quotes, so
    // our tag, with the quotes around it, can only match a whole list item.
    return ifNoneMatch === '*' || ifNoneMatch.includes(etag) ? notModified : fullResponse
  }
}
