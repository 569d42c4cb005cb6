import type { IncomingMessage, RequestListener } from 'node:http'
import { HttpError } from '../http/errors.ts'
import { readHeaderFields } from '../http/header-fields.ts'
import { respond } from '../http/respond.ts'
import { errorResponse, jsonResponse, type HttpResponse } from '../http/response.ts'
import { readSegments } from '../http/route.ts'
import type { MaybePromise } from '../maybe-promise.ts'
import { createDocument, type Document } from './document.ts'
import { programDescription } from './program-description.ts'
import { createProbes } from './probes.ts'
import type { Readiness } from './readiness.ts'

/** The paths that programs use, beside those of the plants. None needs a token. */
export type ProgramPath = '/livez' | '/readyz' | '/openapi.json'

export const PROGRAM_PATHS: readonly ProgramPath[] = ['/livez', '/readyz', '/openapi.json']

/** The methods of each path of the program: HEAD and OPTIONS follow from GET. */
export const PROGRAM_METHODS: readonly string[] = ['GET', 'HEAD', 'OPTIONS']

/** What the paths of the program serve. */
export interface ProgramOptions {
  readonly readiness: () => Promise<Readiness>
  /** Documents for people, by their paths; by default none. */
  readonly documents?: ReadonlyMap<string, Document>
}

/** Makes the response to a GET. */
type Get = (request: IncomingMessage) => MaybePromise<HttpResponse>

const ALLOW: readonly string[] = ['Allow', PROGRAM_METHODS.join(', ')]

/**
 * Makes the listener for the paths of the program itself.
 * @param notFound answers the requests for all other paths
 */
export function createProgramPaths(options: ProgramOptions, notFound: RequestListener): RequestListener {
  const gets: Readonly<Record<ProgramPath, Get>> = {
    ...createProbes(options.readiness),
    '/openapi.json': createDocument(jsonResponse(200, [], programDescription)),
  }
  const documents = [...(options.documents ?? [])].map(([path, document]) => [path, createDocument(document)] as const)
  return serveGets([...Object.entries(gets), ...documents], notFound)
}

/** Makes the listener for paths that have a GET, and HEAD and OPTIONS with it. */
export function serveGets(
  gets: Iterable<readonly [path: string, get: Get]>,
  notFound: RequestListener,
): RequestListener {
  const byName = new Map<string | undefined, Get>(Array.from(gets, ([path, get]) => [path.slice(1), get]))

  return function answerProgram(request, response) {
    const [root, name, ...others] = readSegments(request.url!)
    const get = root === '' && others.length === 0 ? byName.get(name) : undefined
    if (get === undefined) notFound(request, response)
    else void answer(get, request).then((answered) => respond(request, response, answered))
  }
}

async function answer(get: Get, request: IncomingMessage): Promise<HttpResponse> {
  try {
    readHeaderFields(request.rawHeaders)
    switch (request.method) {
      case 'GET':
      case 'HEAD':
        return await get(request)
      case 'OPTIONS':
        return { status: 204, headers: ALLOW, body: undefined }
      default:
        throw new HttpError('methodNotAllowed', undefined, { headers: ALLOW })
    }
  } catch (error) {
    // Nothing here throws anything else.
    return errorResponse(error as HttpError)
  }
}
