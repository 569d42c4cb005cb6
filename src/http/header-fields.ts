import type { IncomingMessage } from 'node:http'
import { HTTP_ERRORS, HttpError } from './errors.ts'

/** A character of a token, such as a field name (RFC 9110 section 5.6.2). */
export const TCHAR = "[!#$%&'*+.^_`|~\\w-]"

/** The header fields that the service reads. */
export interface HeaderFields {
  /** The value of the last Authorization field; empty if there is no such field. */
  readonly authorization: string
  readonly authorizationCount: number
  /** Empty if there is no such field. */
  readonly contentType: string
  /** All values; empty if there is no such field. */
  readonly contentEncoding: string
  readonly contentLength: number
  /** Whether a body follows the header of an HTTP/1 request. In HTTP/2, a body doesn't need a Content-Length. */
  readonly hasBody: boolean
}

/**
 * Returns the raw headers: name, value, name, value… Serverless adapters may create requests without `rawHeaders`. For
 * these, `headers` serves as a substitute, although it shows most repeated fields as a single field.
 */
export function rawHeadersOf({ rawHeaders, headers }: Partial<IncomingMessage>): readonly string[] {
  if (rawHeaders !== undefined && rawHeaders.length > 0) return rawHeaders
  return Object.entries(headers ?? {}).flatMap(([name, values = []]) =>
    [values].flat().flatMap((value) => [name, value]),
  )
}

/**
 * Reads the header fields in one pass over the raw headers. `request.headers` hides repeated fields, and Node 26
 * creates it from all fields on first access.
 * @throws HttpError 43100 for too many fields, 50100 for a transfer coding other than chunked, 40000 for a repeated
 * Host or Content-Type
 */
export function readHeaderFields(request: Partial<IncomingMessage>): HeaderFields {
  const rawHeaders = rawHeadersOf(request)
  // With 1,000 fields or more, some Node versions silently drop fields, such as a second Authorization.
  if (rawHeaders.length >= 2 * 1000) throw HTTP_ERRORS.headersTooLarge

  let authorization = ''
  let authorizationCount = 0
  let hostCount = 0
  let contentTypeCount = 0
  let contentType = ''
  let contentEncoding = ''
  let contentLength = 0
  let transferEncoding = ''

  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i]!
    const value = rawHeaders[i + 1]!
    // Comparing the length first is cheap, and rules out nearly all other fields.
    switch (name.length) {
      case 4:
        if (name.toLowerCase() === 'host') hostCount++
        break
      case 12:
        if (name.toLowerCase() === 'content-type') {
          contentTypeCount++
          contentType = value
        }
        break
      case 13:
        if (name.toLowerCase() === 'authorization') {
          authorizationCount++
          authorization = value
        }
        break
      case 14:
        if (name.toLowerCase() === 'content-length') contentLength = Number(value)
        break
      case 16:
        if (name.toLowerCase() === 'content-encoding') contentEncoding += `,${value}`
        break
      case 17:
        if (name.toLowerCase() === 'transfer-encoding') transferEncoding += `,${value}`
        break
    }
  }

  if (transferEncoding !== '' && !/^,chunked$/i.test(transferEncoding)) throw HTTP_ERRORS.unsupportedTransferCoding
  if (hostCount > 1) throw new HttpError('malformedRequest', 'The request has more than one Host field.')
  if (contentTypeCount > 1) throw new HttpError('malformedRequest', 'The request has more than one Content-Type field.')
  const hasBody = contentLength > 0 || transferEncoding !== ''
  return { authorization, authorizationCount, contentType, contentEncoding, contentLength, hasBody }
}

/**
 * Whether Node and a proxy may disagree on where a request ends, which allows request smuggling: it asks for an upgrade
 * (Node then discards the rest of what it has read), has a transfer coding other than chunked, or any in HTTP/1.0
 * (RFC 9112 section 6.1).
 */
export function hasAmbiguousFraming(request: IncomingMessage): boolean {
  const rawHeaders = rawHeadersOf(request)
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i]!
    if (name.length === 7 && name.toLowerCase() === 'upgrade') return true
    if (name.length !== 17 || name.toLowerCase() !== 'transfer-encoding') continue
    if (request.httpVersionMinor === 0 || rawHeaders[i + 1]!.toLowerCase() !== 'chunked') return true
  }
  return false
}

/** RFC 9110 section 5.6.6: `name=value`, where the value is a token or a quoted string. The charset has to be UTF-8. */
const MEDIA_TYPE_PARAMETER = String.raw`charset=(?:utf-?8|"\\?u\\?t\\?f(?:\\?-)?\\?8")|(?!charset=)${TCHAR}+=(?:${TCHAR}+|"(?:[^"\\]|\\.)*")`

/** Parameters may be empty, so semicolons may be repeated. The pattern is unambiguous, so it takes linear time. */
const JSON_MEDIA_TYPE = new RegExp(
  String.raw`^application/json(?:[ \t]*;[ \t;]*(?:${MEDIA_TYPE_PARAMETER}))*[ \t;]*$`,
  'i',
)

/** Empty list elements are ignored (RFC 9110 section 5.6.1.2). */
const IDENTITY_CODING = /^(?:[ \t,]|identity(?=[ \t]*(?:,|$)))*$/i

/**
 * @throws HttpError 41500 unless the Content-Type is JSON in UTF-8; 41501 for a Content-Encoding other than `identity`
 */
export function checkBodyHeaders({ contentType, contentEncoding }: HeaderFields): void {
  if (contentType !== 'application/json' && !JSON_MEDIA_TYPE.test(contentType)) throw HTTP_ERRORS.unsupportedContentType
  if (contentEncoding !== '' && !IDENTITY_CODING.test(contentEncoding)) throw HTTP_ERRORS.unsupportedContentEncoding
}
