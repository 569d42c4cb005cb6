import { HTTP_ERRORS, HttpError } from './errors.ts'

/** RFC 6750 section 2.1, `b64token`. */
const TOKEN = /^[A-Za-z0-9\-._~+/]+=*$/

/** RFC 9110 section 11.4: a scheme, case-insensitive, then one or more spaces and the credentials. */
const BEARER = /^bearer +([A-Za-z0-9\-._~+/]+=*)$/i

/** Whether a header can carry a text as a token. */
export function isToken(text: string): boolean {
  return TOKEN.test(text)
}

/**
 * Reads the token of a Bearer credential (RFC 6750 section 2.1).
 * @param authorization the value of each Authorization field
 * @throws HttpError 40100 if there is no credential, or one of another scheme; 40101 if it is malformed or given twice
 */
export function readBearerToken(authorization: readonly string[]): string {
  const [credential = '', second] = authorization
  if (second !== undefined) throw GIVEN_TWICE
  const token = BEARER.exec(credential)?.[1]
  if (token !== undefined) return token
  throw /^bearer(?![!#$%&'*+.^_`|~\w-])/i.test(credential) ? HTTP_ERRORS.tokenRefused : HTTP_ERRORS.noToken
}

/** Of two credentials an intermediary may have checked the other one. */
const GIVEN_TWICE = new HttpError('tokenRefused', 'Only one Authorization field may be sent.')
