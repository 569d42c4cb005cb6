import type { IncomingMessage } from 'node:http'
import { OPERATIONS } from '../operations.ts'
import type { Origins } from './settings/variables.ts'

/** The response headers that pages can read, besides those that the Fetch standard always exposes. */
const EXPOSED_FIELDS = 'Link, WWW-Authenticate, Retry-After, X-Request-Id, Allow'
const METHODS = [...new Set(Object.values(OPERATIONS).flatMap(Object.keys))].join(', ')

export interface Cors {
  /** Whether a request is a preflight from an allowed origin. */
  readonly isPreflight: (request: IncomingMessage) => boolean
  /** Returns the CORS header fields of the response: name, value, name, value… */
  readonly getFields: (request: IncomingMessage) => readonly string[]
}

export function createCors(origins: Origins): Cors {
  const isAllowed = ({ headers }: IncomingMessage): boolean => origins === '*' || origins.has(headers.origin ?? '')

  const isPreflight = (request: IncomingMessage): boolean =>
    request.method === 'OPTIONS' && request.headers['access-control-request-method'] !== undefined && isAllowed(request)

  function getFields(request: IncomingMessage): readonly string[] {
    // With a list, the response depends on the Origin header even if the request has none, and caches must know that.
    const fields = origins === '*' ? [] : ['Vary', 'Origin']
    if (!isAllowed(request)) return fields
    fields.push('Access-Control-Allow-Origin', origins === '*' ? '*' : request.headers.origin!)
    fields.push('Access-Control-Expose-Headers', EXPOSED_FIELDS)
    if (!isPreflight(request)) return fields
    fields.push('Access-Control-Allow-Methods', METHODS)
    // Tracing and error reporting libraries add headers of their own, such as `traceparent`. `*` doesn't cover
    // Authorization (Fetch standard section 3.3.2).
    fields.push('Access-Control-Allow-Headers', '*, Authorization')
    // Browsers cache the response to a preflight for at most two hours.
    fields.push('Access-Control-Max-Age', '7200')
    return fields
  }

  return { isPreflight, getFields }
}
