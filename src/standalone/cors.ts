import type { IncomingMessage, RequestListener } from 'node:http'
import type { HttpError } from '../http/errors.ts'
import { fieldsOf, readHeaderFields } from '../http/header-fields.ts'
import { answer, type OnAnswer } from '../http-server/refusal.ts'
import { createResponse, type HttpResponse } from '../http/respond.ts'
import type { CommonFields, RequestHead } from '../http-server/http-server.ts'
import { methodsOf, OPERATIONS, type ResourcePath } from '../operations.ts'
import { PROGRAM_METHODS, SERVER_METHODS } from './paths/program-paths.ts'
import { WHOLE_SERVER, type ResourceOf } from './requests.ts'
import type { Origins } from './settings/variables.ts'

/** What a page may read of a response, besides what the Fetch standard lets it read anyway. */
const EXPOSED = ['Access-Control-Expose-Headers', 'Link, WWW-Authenticate, Retry-After, X-Request-Id, Allow']

/**
 * Libraries for tracing and error reports add headers of their own, such as `traceparent`. `*` doesn't cover Authorization
 * (Fetch standard section 3.3.2). Browsers keep the response for at most 2 hours.
 */
const PREFLIGHT = ['Access-Control-Allow-Headers', '*, Authorization', 'Access-Control-Max-Age', '7200']

const PERMISSION: HttpResponse = { ...createResponse(204, [], undefined), allowsCaching: true }

/** Fields for browsers, and answers to preflights for unknown paths: a browser shows no 404 after a refused one. */
export function createCors(
  origins: Origins,
  resourceOf: ResourceOf,
  onAnswer?: OnAnswer,
): { readonly fields: CommonFields; readonly answerPreflights: (listener: RequestListener) => RequestListener } {
  // With a list, responses depend on the origin whether or not there is one, so a cache must know.
  const vary = origins === '*' ? [] : ['Vary', 'Origin']

  function findAllowed({ rawHeaders }: RequestHead): string | undefined {
    if (origins === '*') return '*'
    // A request that could not be read may come from any origin. If there is only one, no other page learns anything.
    if (rawHeaders === undefined) return origins.size === 1 ? [...origins][0] : undefined
    const origin = fieldsOf(rawHeaders, 'origin').join(', ')
    return origins.has(origin) ? origin : undefined
  }

  return {
    fields(request) {
      const allowed = findAllowed(request)
      if (allowed === undefined) return vary
      const fields = [...vary, 'Access-Control-Allow-Origin', allowed, ...EXPOSED]
      if (!isPreflight(request)) return fields
      const path = resourceOf(request)?.path
      if (path === undefined) return [...fields, ...PREFLIGHT]
      const ownMethods = path === WHOLE_SERVER ? SERVER_METHODS : PROGRAM_METHODS
      const methods = path in OPERATIONS ? methodsOf(path as ResourcePath) : ownMethods
      return [...fields, 'Access-Control-Allow-Methods', methods.join(', '), ...PREFLIGHT]
    },
    answerPreflights: (listener) => (request, response) => {
      const isAllowed = isPreflight(request) && findAllowed(request) !== undefined
      if (isAllowed && resourceOf(request)?.id === undefined) answer(request, response, permit(request), onAnswer)
      else listener(request, response)
    },
  }
}

function permit({ rawHeaders }: IncomingMessage): HttpResponse {
  try {
    readHeaderFields(rawHeaders)
    return PERMISSION
  } catch (error) {
    // readHeaderFields throws nothing else.
    return error as HttpError
  }
}

const isPreflight = ({ method, rawHeaders = [] }: RequestHead): boolean =>
  method === 'OPTIONS' &&
  ['origin', 'access-control-request-method'].every((name) => fieldsOf(rawHeaders, name).length > 0)
