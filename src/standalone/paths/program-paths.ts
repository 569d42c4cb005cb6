import type { IncomingMessage, RequestListener } from 'node:http'
import { HttpError } from '../../http/errors.ts'
import { readHeaderFields } from '../../http/header-fields.ts'
import { jsonResponse, type HttpResponse } from '../../http/response.ts'
import { createRouter } from '../../http/route.ts'
import { answer, type OnAnswer } from '../../http-server/answer.ts'
import type { MaybePromise } from '../../maybe-promise.ts'
import { createDocument, type Document } from './document.ts'
import { programDescription, type ProgramPath } from './program-description.ts'
import { createProbes } from './probes.ts'
import type { Readiness } from './readiness.ts'

export const PROGRAM_PATHS: readonly ProgramPath[] = ['/livez', '/readyz', '/openapi.json']

/** The methods of each path of the program: HEAD and OPTIONS follow from GET. */
export const PROGRAM_METHODS: readonly string[] = ['GET', 'HEAD', 'OPTIONS']

export interface ProgramOptions {
  readonly readiness: () => Promise<Readiness>
  /** Documents for people, by their paths; by default none. */
  readonly documents?: ReadonlyMap<string, Document>
  /** Is told of each response but those of the probes. */
  readonly onAnswer?: OnAnswer | undefined
}

type Get = (request: IncomingMessage) => MaybePromise<HttpResponse>

const ALLOW: readonly string[] = ['Allow', PROGRAM_METHODS.join(', ')]

/**
 * Makes the listener for the paths of the program itself.
 * @param notFound answers the requests for all other paths
 */
export function createProgramPaths(options: ProgramOptions, notFound: RequestListener): RequestListener {
  const description = jsonResponse(200, [], programDescription)
  const documents = [['/openapi.json', description] as const, ...(options.documents ?? [])]
  const gets = documents.map(([path, document]) => [path, createDocument(document)] as const)
  return serveGets(Object.entries(createProbes(options.readiness)), serveGets(gets, notFound, options.onAnswer))
}

/** Makes the listener for paths that have a GET, and HEAD and OPTIONS with it. */
export function serveGets(
  gets: Iterable<readonly [path: string, get: Get]>,
  notFound: RequestListener,
  onAnswer?: OnAnswer,
): RequestListener {
  const byPath = new Map(gets)
  const route = createRouter('', [...byPath.keys()])

  return function answerProgram(request, response) {
    const path = route(request.url!)?.path
    if (path === undefined) notFound(request, response)
    else void find(byPath.get(path)!, request).then((found) => answer(request, response, found, onAnswer, path))
  }
}

async function find(get: Get, request: IncomingMessage): Promise<HttpResponse> {
  try {
    readHeaderFields(request.rawHeaders)
    switch (request.method) {
      case 'GET':
      case 'HEAD':
        return await get(request)
      case 'OPTIONS':
        return { status: 204, headers: ALLOW, body: undefined }
      default:
        return new HttpError('methodNotAllowed', undefined, { headers: ALLOW })
    }
  } catch (error) {
    // Nothing here throws anything else.
    return error as HttpError
  }
}
