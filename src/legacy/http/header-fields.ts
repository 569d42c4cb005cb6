import type { IncomingMessage } from 'node:http'
import { isIPv6 } from 'node:net'
import { HTTP_ERRORS, HttpError } from './errors.ts'

/** A character of a token, such as a field name (RFC 9110 section 5.6.2). */
export const TCHAR = "[!#$%&'*+.^_`|~\\w-]"

export interface HeaderFields {
  /** The value of the last Authorization field; empty if there is no such field. */
  readonly authorization: string
  readonly authorizationCount: number
  readonly contentType: string | undefined
  readonly contentEncoding: string
  readonly contentLength: number
}

/** With 1,000 fields or more, some Node versions silently drop fields, such as a second Authorization. */
export const hasTooManyFields = (rawHeaders: readonly string[]): boolean => rawHeaders.length >= 2 * 1000

/**
 * Returns the raw headers: name, value, name, value… Serverless adapters may create requests without `rawHeaders`. For
 * these, `headers` serves as a substitute, although it shows most repeated fields as a single field.
 */
export function rawHeadersOf(
  request: Pick<IncomingMessage, 'headers'> & Partial<Pick<IncomingMessage, 'rawHeaders'>>,
): readonly string[] {
  const { rawHeaders = [] } = request
  if (rawHeaders.length > 0) return rawHeaders
  return Object.entries(request.headers).flatMap(([name, value = []]) => [value].flat().flatMap((item) => [name, item]))
}

const EMPTY_VALUES: string[] = []

/**
 * Returns all values of a field. The name must be in lowercase. Faster than `req.headers`, which Node 26 creates from
 * all fields on first access.
 */
export function headerValuesOf(rawHeaders: readonly string[], name: string): readonly string[] {
  let values = EMPTY_VALUES
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const fieldName = rawHeaders[i]!
    if (fieldName.length !== name.length || fieldName.toLowerCase() !== name) continue
    if (values === EMPTY_VALUES) values = [rawHeaders[i + 1]!]
    else values.push(rawHeaders[i + 1]!)
  }
  return values
}

/**
 * Reads, in one pass, all fields that the service needs. Doesn't use `req.headers`, which hides repeated fields.
 * @throws HttpError 43100 for too many fields, 50100 for a transfer coding other than chunked, 40000 for a repeated
 * Host or Content-Type
 */
export function readHeaderFields(rawHeaders: readonly string[]): HeaderFields {
  if (hasTooManyFields(rawHeaders)) throw HTTP_ERRORS.headersTooLarge

  let authorization = ''
  let authorizationCount = 0
  let hostCount = 0
  let contentTypeCount = 0
  let contentType: string | undefined
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
  return { authorization, authorizationCount, contentType, contentEncoding, contentLength }
}

/** RFC 9112 section 3.2. An http URI must have a host, so the value can't be empty (RFC 9110 section 4.2.1). */
const NAMED_HOST = /^(?:[\w.~!$&'()*+,;=-]|%[0-9a-f]{2})+(?::[0-9]*)?$/i

/**
 * RFC 3986 section 3.2.2, with a zone ID as in RFC 6874 (`%25eth0`), or in the form that Node's client sends (`%eth0`).
 */
const IP_LITERAL_HOST =
  /^\[(?:(?<address>[0-9a-f:.]+)(?:%(?:[\w.~-]|%[0-9a-f]{2})+)?|v[0-9a-f]+\.[\w.~!$&'()*+,;=:-]+)\](?::[0-9]*)?$/i

export function isValidHost(value: string): boolean {
  if (NAMED_HOST.test(value)) return true
  const literal = IP_LITERAL_HOST.exec(value)
  const address = literal?.groups!['address']
  return literal !== null && (address === undefined || isIPv6(address))
}
