import { HTTP_ERRORS, HttpError } from './errors.ts'
import { TCHAR, type HeaderFields } from './header-fields.ts'

/** RFC 6750 section 2.1, `b64token`. */
export const B64TOKEN: string = String.raw`[A-Za-z0-9\-._~+/]+=*`

/**
 * RFC 9110 section 11.4: a case-insensitive scheme, one or more spaces, and then the credentials, which the match
 * doesn't include.
 */
const BEARER_PREFIX = new RegExp(`bearer +(?=${B64TOKEN}$)`, 'iy')
const BEARER_SCHEME = new RegExp(`^bearer(?!${TCHAR})`, 'i')

export type Credentials = Pick<HeaderFields, 'authorization' | 'authorizationCount'>

/**
 * Returns the token, or an error: 40100 if there are no bearer credentials, 40101 if they are malformed or the field is
 * repeated.
 */
export function readBearerToken({ authorization, authorizationCount }: Credentials): string | HttpError {
  if (authorizationCount > 1) return DUPLICATE_AUTHORIZATION
  BEARER_PREFIX.lastIndex = 0
  if (BEARER_PREFIX.test(authorization)) return authorization.slice(BEARER_PREFIX.lastIndex)
  return BEARER_SCHEME.test(authorization) ? HTTP_ERRORS.invalidToken : HTTP_ERRORS.missingToken
}

/** Two fields are rejected even if both are valid: a proxy might check one of them, and the service the other. */
const DUPLICATE_AUTHORIZATION = new HttpError('invalidToken', 'The request has more than one Authorization field.')
