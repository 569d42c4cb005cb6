import { createHash } from 'node:crypto'
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'
import { answer, type OnAnswer } from '../../http-server/refusal.ts'
import { HTTP_ERRORS, HttpError } from '../../http/errors.ts'
import { readHeaderFields } from '../../http/header-fields.ts'
import { createResponse, jsonResponse, type HttpResponse } from '../../http/respond.ts'
import type { MaybePromise } from '../../maybe-promise.ts'
import { methodsOf, RESOURCE_PATHS } from '../../operations.ts'
import { createResources, WHOLE_SERVER, type ResourceOf } from '../requests.ts'
import { programDescription } from './program-description.ts'
import type { Readiness } from './readiness.ts'

/** The methods of each path of the program: HEAD and OPTIONS follow from GET. */
export const PROGRAM_METHODS: readonly string[] = ['GET', 'HEAD', 'OPTIONS']

const ALL_METHODS = new Set([...PROGRAM_METHODS, ...RESOURCE_PATHS.flatMap(methodsOf)])

/** The methods in the response to `OPTIONS *`, on the admin port too. OPTIONS comes last, as for a single path. */
export const SERVER_METHODS: readonly string[] = [...ALL_METHODS]
  .filter((method) => method !== 'OPTIONS')
  .concat('OPTIONS')

const ALLOW: readonly string[] = ['Allow', PROGRAM_METHODS.join(', ')]
const ALLOW_OF_SERVER: readonly string[] = ['Allow', SERVER_METHODS.join(', ')]
const LIVE = jsonResponse({ status: 'live' })

const BY_READINESS: Readonly<Record<Readiness, HttpResponse>> = {
  ready: jsonResponse({ status: 'ready' }),
  unready: HTTP_ERRORS.storeUnavailable,
  draining: new HttpError('storeUnavailable', 'The service is shutting down.'),
}

type Get = (request: IncomingMessage) => MaybePromise<HttpResponse>
/** Undefined for the path that has OPTIONS only. */
type Gets = readonly (readonly [path: string, get: Get | undefined])[]

const SERVER: Gets[0] = [WHOLE_SERVER, undefined]

export interface ProgramOptions {
  readonly readiness: () => Promise<Readiness>
  readonly documents?: ReadonlyMap<string, Document>
  /** Is told of each response but those of the probes. */
  readonly onAnswer?: OnAnswer | undefined
}

export function createProgramPaths(
  options: ProgramOptions,
  resourceOf: ResourceOf,
  notFound: RequestListener,
): RequestListener {
  const description = jsonResponse(programDescription)
  const documents = [['/openapi.json', description] as const, ...(options.documents ?? [])]
  const gets = documents.map(([path, document]) => [path, createDocument(document)] as const)
  const others = serveGets([...gets, SERVER], resourceOf, notFound, options.onAnswer)
  return serveGets(probes(options.readiness), resourceOf, others)
}

/** Makes the listener of the admin port: the probes and the metrics in Prometheus's text format. None needs a token. */
export function createAdminListener(
  readiness: () => Promise<Readiness>,
  formatMetrics: (isReady: boolean) => string,
): RequestListener {
  const getMetrics = async (): Promise<HttpResponse> => {
    const body = formatMetrics((await readiness()) === 'ready')
    return { ...createResponse(200, [], body), contentType: 'text/plain; version=0.0.4; charset=utf-8' }
  }
  const message = 'There is nothing at this path. Here are /livez, /readyz and /metrics.'
  const gets: Gets = [...probes(readiness), ['/metrics', getMetrics]]
  const resourceOf = createResources(gets.map(([path]) => path))
  return serveGets([...gets, SERVER], resourceOf, (request, response) => {
    answer(request, response, new HttpError('noResource', message))
  })
}

function probes(readiness: () => Promise<Readiness>): Gets {
  return [
    ['/livez', () => LIVE],
    ['/readyz', async () => BY_READINESS[await readiness()]],
  ]
}

function serveGets(gets: Gets, resourceOf: ResourceOf, notFound: RequestListener, onAnswer?: OnAnswer) {
  const byPath = new Map(gets)
  return (request: IncomingMessage, response: ServerResponse): void => {
    const path = resourceOf(request)?.path
    if (path === undefined || !byPath.has(path)) notFound(request, response)
    else void find(byPath.get(path), request).then((found) => answer(request, response, found, onAnswer, path))
  }
}

async function find(get: Get | undefined, request: IncomingMessage): Promise<HttpResponse> {
  const headers = get === undefined ? ALLOW_OF_SERVER : ALLOW
  try {
    readHeaderFields(request.rawHeaders)
    if (get === undefined || request.method === 'OPTIONS')
      return { ...createResponse(204, headers, undefined), allowsCaching: true }
    if (request.method === 'GET' || request.method === 'HEAD') return await get(request)
    return new HttpError('methodNotAllowed', undefined, headers)
  } catch (error) {
    // Nothing here throws anything else.
    return error as HttpError
  }
}

export type Document = HttpResponse & { readonly body: string }

/** Makes the GET of a response that never changes. Clients that have it get 304 (RFC 9110 section 13.1.2). */
export function createDocument(document: Document): (request: IncomingMessage) => HttpResponse {
  // Node would copy a text for each response, to join it with the head.
  const body = Buffer.from(document.body, 'latin1')
  const etag = `"${createHash('sha256').update(body).digest('base64url')}"`
  const headers = [...document.headers, 'ETag', etag]
  const whole: HttpResponse = { ...document, headers, body, allowsCaching: true }
  const notModified: HttpResponse = { ...createResponse(304, headers, undefined), allowsCaching: true }

  return function getDocument({ headers: { 'if-none-match': known = '' } }) {
    // The comparison is weak. A tag holds no quote, so our text, quotes included, can only be a whole member.
    return known === '*' || known.includes(etag) ? notModified : whole
  }
}
