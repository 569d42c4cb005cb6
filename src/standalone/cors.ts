import type { IncomingMessage, ServerResponse } from 'node:http'
import { OPERATIONS } from '../operations.ts'
import type { Origins } from './settings/variables.ts'

/** The response headers that pages can read, besides those that the Fetch standard always exposes. */
const EXPOSED_FIELDS = 'Link, WWW-Authenticate, Retry-After, X-Request-Id, Allow'
const METHODS = [...new Set(Object.values(OPERATIONS).flatMap(Object.keys))].join(', ')

/**
 * Creates a function that sets the CORS header fields of a response. It returns true for a preflight from an allowed
 * origin.
 */
export function createCors(origins: Origins): (request: IncomingMessage, response: ServerResponse) => boolean {
  return ({ method, headers }, response) => {
    // With a list, the response depends on the Origin header even if the request has none, and caches must know that.
    if (origins !== '*') response.setHeader('Vary', 'Origin')
    const { origin = '' } = headers
    if (origins !== '*' && !origins.has(origin)) return false
    response.setHeader('Access-Control-Allow-Origin', origins === '*' ? '*' : origin)
    response.setHeader('Access-Control-Expose-Headers', EXPOSED_FIELDS)
    if (method !== 'OPTIONS' || headers['access-control-request-method'] === undefined) return false
    response.setHeader('Access-Control-Allow-Methods', METHODS)
    // Tracing and error reporting libraries add headers of their own, such as `traceparent`. `*` doesn't cover
    // Authorization (Fetch standard section 3.3.2).
    response.setHeader('Access-Control-Allow-Headers', '*, Authorization')
    // Browsers cache the response to a preflight for at most two hours.
    response.setHeader('Access-Control-Max-Age', '7200')
    return true
  }
}
