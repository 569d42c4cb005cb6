import { HTTP_ERRORS, HttpError } from './errors.ts'
import { TCHAR, type HeaderFields } from './header-fields.ts'

/** RFC 6750 section 2.1, `b64token`. */
export const B64TOKEN: string = String.raw`[A-Za-z0-9\-._~+/]+=*`

/** RFC 9110 section 11.4: a scheme in any case, one space or more, and then the credentials, where a match ends. */
const BEARER_PREFIX = new RegExp(`bearer +(?=${B64TOKEN}$)`, 'iy')
const BEARER_SCHEME = new RegExp(`^bearer(?!${TCHAR})`, 'i')

export type Credentials = Pick<HeaderFields, 'authorization' | 'authorizationCount'>

/** The token, or the error: 40100 if there is no bearer credential; 40101 if it is malformed, or there are two fields. */
export function readBearerToken({ authorization, authorizationCount }: Credentials): string | HttpError {
  if (authorizationCount > 1) return DUPLICATE_AUTHORIZATION
  BEARER_PREFIX.lastIndex = 0
  if (BEARER_PREFIX.test(authorization)) return authorization.slice(BEARER_PREFIX.lastIndex)
  return BEARER_SCHEME.test(authorization) ? HTTP_ERRORS.invalidToken : HTTP_ERRORS.missingToken
}

/** A proxy may have checked the other one of two credentials. */
const DUPLICATE_AUTHORIZATION = new HttpError('invalidToken', 'Only one Authorization field may be sent.')
