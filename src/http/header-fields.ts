import type { IncomingMessage } from 'node:http'
import { HTTP_ERRORS, HttpError } from './errors.ts'

/** A character of a token, such as a field name (RFC 9110 section 5.6.2). */
export const TCHAR = "[!#$%&'*+.^_`|~\\w-]"

/** The values of each header field that the service reads. */
export type HeaderFields = Readonly<Record<FieldName, readonly string[]>>

type FieldName = keyof ReturnType<typeof createFields>

const createFields = () => ({
  authorization: [] as string[],
  'content-encoding': [] as string[],
  'content-length': [] as string[],
  'content-type': [] as string[],
  host: [] as string[],
  'transfer-encoding': [] as string[],
})

/** Comparing the length of a name first is cheap, and rules out nearly all other fields. */
const NAME_BY_LENGTH: (FieldName | undefined)[] = []
for (const name of Object.keys(createFields())) NAME_BY_LENGTH[name.length] = name as FieldName

/**
 * Returns the raw headers: name, value, name, value… Serverless adapters may create requests without `rawHeaders`. For
 * these, `headers` serves as a substitute, although it shows most repeated fields as a single field.
 */
export function rawHeadersOf(request: Partial<IncomingMessage>): readonly string[] {
  const { rawHeaders } = request
  if (rawHeaders !== undefined && rawHeaders.length > 0) return rawHeaders
  return Object.entries(request.headers ?? {}).flatMap(([name, values = []]) =>
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

  const fields = createFields()
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = NAME_BY_LENGTH[rawHeaders[i]!.length]
    if (name !== undefined && rawHeaders[i]!.toLowerCase() === name) fields[name].push(rawHeaders[i + 1]!)
  }
  const codings = fields['transfer-encoding']
  if (codings.length > 0 && !/^chunked$/i.test(codings.join())) throw HTTP_ERRORS.unsupportedTransferCoding
  if (fields.host.length > 1) throw new HttpError('malformedRequest', 'The request has more than one Host field.')
  if (fields['content-type'].length > 1) {
    throw new HttpError('malformedRequest', 'The request has more than one Content-Type field.')
  }
  return fields
}

/** Whether a request has a Transfer-Encoding, usually chunked. */
export const hasTransferCoding = (request: Partial<IncomingMessage>): boolean =>
  rawHeadersOf(request).some((text) => text.length === 17 && text.toLowerCase() === 'transfer-encoding')

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

/** @throws HttpError 41500 unless the Content-Type is JSON in UTF-8, 41501 if the Content-Encoding isn't `identity` */
export function checkBodyHeaders(fields: HeaderFields): void {
  const [contentType = ''] = fields['content-type']
  if (contentType !== 'application/json' && !JSON_MEDIA_TYPE.test(contentType)) throw HTTP_ERRORS.unsupportedContentType
  if (!IDENTITY_CODING.test(fields['content-encoding'].join())) throw HTTP_ERRORS.unsupportedContentEncoding
}
