import type { IncomingMessage, RequestListener } from 'node:http'
import type { HttpError } from '../http/errors.ts'
import { headerValuesOf, readHeaderFields } from '../http/header-fields.ts'
import { sendResponse, type OnResponse } from './http-server.ts'
import { createResponse, type HttpResponse } from '../http/respond.ts'
import type { GetCommonFields, RequestHead } from './http-server.ts'
import { methodsOf, OPERATIONS, type ResourcePath } from '../operations.ts'
import { PROGRAM_METHODS, SERVER_METHODS } from './paths/program-listener.ts'
import { ASTERISK_PATH, type FindResource } from './requests.ts'
import type { Origins } from './settings/variables.ts'

/**
 * The response headers that pages from other origins can read in addition to those that the Fetch standard always
 * exposes.
 */
const EXPOSE_FIELDS = ['Access-Control-Expose-Headers', 'Link, WWW-Authenticate, Retry-After, X-Request-Id, Allow']

/**
 * Allows any request header, because tracing and error-reporting libraries add their own, such as `traceparent`. `*`
 * doesn't cover Authorization (Fetch standard section 3.3.2). Browsers cache a preflight response for at most 2 hours.
 */
const PREFLIGHT_FIELDS = ['Access-Control-Allow-Headers', '*, Authorization', 'Access-Control-Max-Age', '7200']

const PREFLIGHT_RESPONSE: HttpResponse = { ...createResponse(204, [], undefined), allowsCaching: true }

/**
 * Creates a function that returns the CORS header fields of a response, and a wrapper that answers preflights for paths
 * that the listener doesn't know. If such a preflight failed, the browser would report a CORS error instead of the 404.
 */
export function createCors(
  origins: Origins,
  findResource: FindResource,
  onResponse?: OnResponse,
): { readonly getFields: GetCommonFields; readonly handlePreflights: (listener: RequestListener) => RequestListener } {
  // With a list, the response depends on the Origin header even if the request has none, and caches must know that.
  const vary = origins === '*' ? [] : ['Vary', 'Origin']

  function findAllowedOrigin({ rawHeaders }: RequestHead): string | undefined {
    if (origins === '*') return '*'
    // The origin of a request that couldn't be parsed is unknown. If only one origin is allowed, naming it is safe:
    // pages from other origins still can't read the response.
    if (rawHeaders === undefined) return origins.size === 1 ? [...origins][0] : undefined
    const origin = headerValuesOf(rawHeaders, 'origin').join(', ')
    return origins.has(origin) ? origin : undefined
  }

  return {
    getFields(request) {
      const allowedOrigin = findAllowedOrigin(request)
      if (allowedOrigin === undefined) return vary
      const fields = [...vary, 'Access-Control-Allow-Origin', allowedOrigin, ...EXPOSE_FIELDS]
      if (!isPreflight(request)) return fields
      const path = findResource(request)?.path
      if (path === undefined) return [...fields, ...PREFLIGHT_FIELDS]
      const programMethods = path === ASTERISK_PATH ? SERVER_METHODS : PROGRAM_METHODS
      const methods = path in OPERATIONS ? methodsOf(path as ResourcePath) : programMethods
      return [...fields, 'Access-Control-Allow-Methods', methods.join(', '), ...PREFLIGHT_FIELDS]
    },
    handlePreflights: (listener) => (request, response) => {
      const isAllowed = isPreflight(request) && findAllowedOrigin(request) !== undefined
      if (isAllowed && findResource(request)?.id === undefined)
        sendResponse(request, response, createPreflightResponse(request), onResponse)
      else listener(request, response)
    },
  }
}

function createPreflightResponse({ rawHeaders }: IncomingMessage): HttpResponse {
  try {
    readHeaderFields(rawHeaders)
    return PREFLIGHT_RESPONSE
  } catch (error) {
    // readHeaderFields throws only HttpErrors.
    return error as HttpError
  }
}

const isPreflight = ({ method, rawHeaders = [] }: RequestHead): boolean =>
  method === 'OPTIONS' &&
  ['origin', 'access-control-request-method'].every((name) => headerValuesOf(rawHeaders, name).length > 0)
