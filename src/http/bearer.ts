import { hash } from 'node:crypto'
import { inspect } from 'node:util'
import { isText, TEXT } from '../plants/text.ts'
import { HttpError } from './errors.ts'

/** RFC 6750 section 2.1, `b64token`. */
const TOKEN = /^[A-Za-z0-9\-._~+/]+=*$/

/** RFC 9110 section 11.4: a scheme, case-insensitive, then one or more spaces and the credentials. */
const BEARER = /^bearer +([A-Za-z0-9\-._~+/]+=*)$/i

/**
 * Reads the token of a Bearer credential (RFC 6750 section 2.1).
 * @param authorization the value of each Authorization field
 * @throws HttpError 40100 if there is no credential, or one of another scheme; 40101 if it is malformed or given twice:
 * of two credentials an intermediary may have checked the other one
 */
export function readBearerToken(authorization: readonly string[]): string {
  const [credential = '', second] = authorization
  if (second !== undefined) throw new HttpError('tokenRefused', 'Only one Authorization field may be sent.')
  const token = BEARER.exec(credential)?.[1]
  if (token !== undefined) return token
  throw new HttpError(/^bearer(?![!#$%&'*+.^_`|~\w-])/i.test(credential) ? 'tokenRefused' : 'noToken')
}

/**
 * Makes the function that finds the owner of a token. It keeps digests alone: a heap dump does not show the tokens, and
 * the time of a look-up does not depend on how much of a guess is right.
 * @throws TypeError if no header could carry a token, or an owner is not one; the token is not quoted
 */
export function createTokenTable(tokens: Iterable<readonly [string, string]>): (token: string) => string | undefined {
  const owners = new Map<string, string>()
  for (const [token, owner] of tokens) {
    requireOwner(owner, 'options.tokens: an owner must be')
    if (!TOKEN.test(token)) {
      throw new TypeError(
        `options.tokens: the token of ${inspect(owner)} must be letters, digits and -._~+/, then any "="`,
      )
    }
    owners.set(digest(token), owner)
  }
  return (token) => owners.get(digest(token))
}

/**
 * Checks that a value can own plants.
 * @param complaint how the message begins
 * @throws TypeError if it cannot
 */
export function requireOwner(value: unknown, complaint: string): string {
  if (isText(value) && value !== '') return value
  throw new TypeError(`${complaint} a non-empty string of ${TEXT}`)
}

function digest(token: string): string {
  // The shortest form, as each look-up goes through all of it once more.
  return hash('sha256', token, 'binary')
}
