import { createHash } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import type { HttpResponse } from '../../http/respond.ts'

export type Document = HttpResponse & { readonly body: string }

/** Makes the GET of a response that never changes. Clients that have it get 304 (RFC 9110 section 13.1.2). */
export function createDocument(document: Document): (request: IncomingMessage) => HttpResponse {
  // Node would copy a text for each response, to join it with the head.
  const body = Buffer.from(document.body, 'latin1')
  const etag = `"${createHash('sha256').update(body).digest('base64url')}"`
  const headers = [...document.headers, 'ETag', etag]
  const whole: HttpResponse = { ...document, headers, body }
  const notModified: HttpResponse = { status: 304, headers, body: undefined }

  return function getDocument({ headers: { 'if-none-match': known = '' } }) {
    // The comparison is weak. A tag holds no quote, so our text, quotes included, can only be a whole member.
    return known === '*' || known.includes(etag) ? notModified : whole
  }
}
