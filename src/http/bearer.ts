import { HTTP_ERRORS, HttpError } from './errors.ts'
import { TCHAR } from './header-fields.ts'

/** RFC 6750 section 2.1, `b64token`. */
export const B64TOKEN: string = String.raw`[A-Za-z0-9\-._~+/]+=*`

/** RFC 9110 section 11.4: a scheme in any case, one space or more, the credentials. */
const BEARER = new RegExp(`^bearer +${B64TOKEN}$`, 'i')
const BEARER_SCHEME = new RegExp(`^bearer(?!${TCHAR})`, 'i')

/** @throws HttpError 40100 if there is no bearer credential; 40101 if it is malformed, or there are two fields */
export function readBearerToken(authorization: readonly string[]): string {
  const [credential = '', second] = authorization
  if (second !== undefined) throw GIVEN_TWICE
  if (BEARER.test(credential)) return credential.slice(credential.lastIndexOf(' ') + 1)
  throw BEARER_SCHEME.test(credential) ? HTTP_ERRORS.tokenRefused : HTTP_ERRORS.noToken
}

/** A proxy may have checked the other one of two credentials. */
const GIVEN_TWICE = new HttpError('tokenRefused', 'Only one Authorization field may be sent.')
