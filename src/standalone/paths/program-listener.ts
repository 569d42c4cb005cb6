import { createHash } from 'node:crypto'
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'
import { sendResponse, type OnResponse } from '../../http-server/reject.ts'
import { HTTP_ERRORS, HttpError } from '../../http/errors.ts'
import { readHeaderFields } from '../../http/header-fields.ts'
import { createResponse, jsonResponse, type HttpResponse } from '../../http/respond.ts'
import type { MaybePromise } from '../../maybe-promise.ts'
import { methodsOf, RESOURCE_PATHS } from '../../operations.ts'
import { createProgramRouter, ASTERISK_PATH, type FindResource } from '../requests.ts'
import { programDescription } from './program-description.ts'
import type { Readiness } from './readiness.ts'

/** The methods of each path of the program: HEAD and OPTIONS follow from GET. */
export const PROGRAM_METHODS: readonly string[] = ['GET', 'HEAD', 'OPTIONS']

const ALL_METHODS = new Set([...PROGRAM_METHODS, ...RESOURCE_PATHS.flatMap(methodsOf)])

/** The methods in the response to `OPTIONS *`, on the admin port too. OPTIONS comes last, as for a single path. */
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
/** Undefined for the path that has OPTIONS only. */
type GetRoutes = readonly (readonly [path: string, get: GetHandler | undefined])[]

const SERVER_ROUTE: GetRoutes[0] = [ASTERISK_PATH, undefined]

export interface ProgramOptions {
  readonly checkReadiness: () => Promise<Readiness>
  readonly documents?: ReadonlyMap<string, StaticDocument>
  /** Is told of each response but those of the probes. */
  readonly onResponse?: OnResponse | undefined
}

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

/** Makes the listener of the admin port: the probes and the metrics in Prometheus's text format. None needs a token. */
export function createAdminListener(
  checkReadiness: () => Promise<Readiness>,
  formatMetrics: (isReady: boolean) => string,
): RequestListener {
  const getMetrics = async (): Promise<HttpResponse> => {
    const body = formatMetrics((await checkReadiness()) === 'ready')
    return { ...createResponse(200, [], body), contentType: 'text/plain; version=0.0.4; charset=utf-8' }
  }
  const message = 'There is nothing at this path. Here are /livez, /readyz and /metrics.'
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
    // Nothing here throws anything else.
    return error as HttpError
  }
}

export type StaticDocument = HttpResponse & { readonly body: string }

/** Makes the GET of a response that never changes. Clients that have it get 304 (RFC 9110 section 13.1.2). */
export function createDocumentHandler(document: StaticDocument): (request: IncomingMessage) => HttpResponse {
  // Node would copy a text for each response, to join it with the head.
  const body = Buffer.from(document.body, 'latin1')
  const etag = `"${createHash('sha256').update(body).digest('base64url')}"`
  const headers = [...document.headers, 'ETag', etag]
  const fullResponse: HttpResponse = { ...document, headers, body, allowsCaching: true }
  const notModified: HttpResponse = { ...createResponse(304, headers, undefined), allowsCaching: true }

  return function getDocument({ headers: { 'if-none-match': ifNoneMatch = '' } }) {
    // The comparison is weak. A tag holds no quote, so our text, quotes included, can only be a whole member.
    return ifNoneMatch === '*' || ifNoneMatch.includes(etag) ? notModified : fullResponse
  }
}
