import type { IncomingMessage } from 'node:http'
import { HTTP_ERRORS, HttpError } from './errors.ts'

/** A character of a token, such as a field name (RFC 9110 section 5.6.2). */
export const TCHAR = "[!#$%&'*+.^_`|~\\w-]"

/**
 * Returns the raw headers: name, value, name, value… Serverless adapters may create requests without `rawHeaders`. For
 * these, `headers` serves as a substitute, although it shows most repeated fields as a single field.
 */
function rawHeadersOf(request: Partial<IncomingMessage>): readonly string[] {
  const { rawHeaders } = request
  if (rawHeaders !== undefined && rawHeaders.length > 0) return rawHeaders
  return Object.entries(request.headers ?? {}).flatMap(([name, values = []]) =>
    [values].flat().flatMap((value) => [name, value]),
  )
}

const NO_VALUES: string[] = []

/**
 * Returns all values of a header field, whose name must be in lowercase. `request.headers` hides repeated fields, and
 * Node 26 creates it from all fields on first access.
 */
export function headerValues(request: Partial<IncomingMessage>, name: string): readonly string[] {
  const rawHeaders = rawHeadersOf(request)
  let values = NO_VALUES
  for (let i = 0; i < rawHeaders.length; i += 2) {
    // Comparing the length first is cheap, and rules out nearly all other fields.
    if (rawHeaders[i]!.length !== name.length || rawHeaders[i]!.toLowerCase() !== name) continue
    if (values === NO_VALUES) values = [rawHeaders[i + 1]!]
    else values.push(rawHeaders[i + 1]!)
  }
  return values
}

const REPEATED_HOST = new HttpError('malformedRequest', 'The request has more than one Host field.')
const REPEATED_CONTENT_TYPE = new HttpError('malformedRequest', 'The request has more than one Content-Type field.')

/**
 * Checks the header fields that matter for every request.
 * @throws HttpError 43100 for too many fields, 50100 for a transfer coding other than chunked, 40000 for a repeated
 * Host or Content-Type
 */
export function checkHeader(request: Partial<IncomingMessage>): void {
  // With 1,000 fields or more, some Node versions silently drop fields, such as a second Authorization.
  if (rawHeadersOf(request).length >= 2 * 1000) throw HTTP_ERRORS.headersTooLarge
  const codings = headerValues(request, 'transfer-encoding')
  if (codings.length > 0 && !/^chunked$/i.test(codings.join())) throw HTTP_ERRORS.unsupportedTransferCoding
  if (headerValues(request, 'host').length > 1) throw REPEATED_HOST
  if (headerValues(request, 'content-type').length > 1) throw REPEATED_CONTENT_TYPE
}

/** Whether a request has a body, which may be empty if it's chunked. */
export const hasBody = (request: Partial<IncomingMessage>): boolean =>
  headerValues(request, 'transfer-encoding').length > 0 || Number(headerValues(request, 'content-length')[0] ?? 0) > 0

/**
 * Whether Node and a proxy may disagree on where a request ends, which allows request smuggling: it asks for an upgrade
 * (Node then discards the rest of what it has read), has a transfer coding other than chunked, or any in HTTP/1.0
 * (RFC 9112 section 6.1).
 */
export function hasAmbiguousFraming(request: IncomingMessage): boolean {
  if (headerValues(request, 'upgrade').length > 0) return true
  const codings = headerValues(request, 'transfer-encoding')
  return codings.some((coding) => request.httpVersionMinor === 0 || coding.toLowerCase() !== 'chunked')
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

/** @throws HttpError 41500 unless the Content-Type is JSON in UTF-8, 41501 if the Content-Encoding isn't `identity` */
export function checkBodyHeaders(request: Partial<IncomingMessage>): void {
  const [contentType = ''] = headerValues(request, 'content-type')
  if (contentType !== 'application/json' && !JSON_MEDIA_TYPE.test(contentType)) throw HTTP_ERRORS.unsupportedContentType
  if (!IDENTITY_CODING.test(headerValues(request, 'content-encoding').join()))
    throw HTTP_ERRORS.unsupportedContentEncoding
}
