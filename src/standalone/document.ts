import { createHash } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import { jsonResponse, type HttpResponse } from '../http/respond.ts'

/**
 * Makes the GET of a value that never changes. Its JSON text is made once. Clients that have it already are answered
 * 304 (RFC 9110 section 13.1.2).
 */
export function createDocument(value: object): (request: IncomingMessage) => HttpResponse {
  const { body } = jsonResponse(200, [], value)
  const etag = `"${createHash('sha256').update(body, 'latin1').digest('base64url')}"`
  const headers = ['ETag', etag]
  const whole: HttpResponse = { status: 200, headers, body }
  const notModified: HttpResponse = { status: 304, headers, body: undefined }

  return function getDocument(request) {
    return isNamed(etag, request.headers['if-none-match']) ? notModified : whole
  }
}

/**
 * Whether an If-None-Match field names an entity tag. The comparison is weak: `W/` before a tag does not matter. A tag
 * holds no quote, so the text of ours, quotes included, can only be a whole member of the list.
 */
function isNamed(etag: string, ifNoneMatch = ''): boolean {
  return ifNoneMatch === '*' || ifNoneMatch.includes(etag)
}
