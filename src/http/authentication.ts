import { hash } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import { inspect } from 'node:util'
import { withDeadline } from '../plants/checked-store.ts'
import { isValidText, TEXT_DESCRIPTION } from '../plants/plant.ts'
import { then, type MaybePromise } from '../plants/store.ts'
import { HTTP_ERRORS, HttpError } from './errors.ts'
import { headerValues, TCHAR } from './header-fields.ts'
import type { HostRequest } from './body.ts'

/** The access level of a token: `read` allows listing plants, and `write` also allows creating and deleting them. */
export type Access = 'read' | 'write'

/** An owner with an access level. */
export interface Caller {
  /** The owner of the plants: a non-empty string of well-formed Unicode without U+0000. */
  readonly owner: string
  /** The access level of the token. */
  readonly access: Access
}

/** Who holds a token: an owner, who then has `write` access, or an object with exactly `owner` and `access`. */
export type TokenHolder = string | Caller

/** Returns the caller that a token identifies; undefined if the token is rejected. */
export type Authenticator = (token: string, request: HostRequest) => MaybePromise<Caller | undefined>

/** RFC 6750 section 2.1, `b64token`. */
const B64TOKEN = String.raw`[A-Za-z0-9\-._~+/]+=*`
const TOKEN = new RegExp(`^${B64TOKEN}$`)

/** RFC 9110 section 11.4: a case-insensitive scheme, one or more spaces, and then the token. */
const BEARER_CREDENTIALS = new RegExp(`^bearer +${B64TOKEN}$`, 'i')
const BEARER_SCHEME = new RegExp(`^bearer(?!${TCHAR})`, 'i')

/** Two fields are rejected even if both are valid: a proxy might check one of them, and the service the other. */
const REPEATED_AUTHORIZATION = new HttpError('invalidToken', 'The request has more than one Authorization field.')

/**
 * Returns the bearer token, or an error: 40100 if there are no bearer credentials, 40101 if they are malformed or the
 * field is repeated. The errors aren't thrown, because throwing would double the cost of a rejected request.
 */
export function readBearerToken(request: Partial<IncomingMessage>): string | HttpError {
  const values = headerValues(request, 'authorization')
  if (values.length > 1) return REPEATED_AUTHORIZATION
  const authorization = values[0] ?? ''
  if (BEARER_CREDENTIALS.test(authorization)) return authorization.slice('Bearer '.length).trimStart()
  return BEARER_SCHEME.test(authorization) ? HTTP_ERRORS.invalidToken : HTTP_ERRORS.missingToken
}

/**
 * Wraps the host's `authenticate`.
 * @param timeoutMs the time that `authenticate` has before the request fails with 50300
 */
export function createAuthenticator(
  authenticate: (token: string, request: HostRequest) => MaybePromise<TokenHolder | null | undefined>,
  timeoutMs: number,
): Authenticator {
  return (token, request) =>
    then(withDeadline(authenticate(token, request), timeoutMs, 'authenticate'), (holder) =>
      holder === null || holder === undefined ? undefined : toCaller(holder, 'authenticate must return'),
    )
}

/**
 * Validates a token holder.
 * @throws TypeError that says what a token holder must be; it omits the value, which might contain a token
 */
export function toCaller(holder: unknown, messagePrefix: string): Caller {
  const caller: unknown = typeof holder === 'string' ? { owner: holder, access: 'write' } : holder
  const { owner, access, ...others } = Object(caller) as Partial<Record<keyof Caller, unknown>>
  const isOwner = isValidText(owner) && owner !== ''
  const isAccess = access === 'read' || access === 'write'
  if (isOwner && isAccess && Object.keys(others).length === 0) return { owner, access }
  throw new TypeError(
    `${messagePrefix} an owner, a non-empty string of ${TEXT_DESCRIPTION}, ` +
      'or an object with only an owner and an access, "read" or "write"',
  )
}

/**
 * Creates an authenticator that looks up callers by the digest of their token, so that neither a heap dump nor the
 * duration of a lookup reveals a token.
 * @throws TypeError if a token or its holder is invalid
 */
export function createTokenTable(
  tokens: Iterable<readonly [string, TokenHolder]>,
): (token: string) => Caller | undefined {
  const callers = new Map<string, Caller>()
  for (const [token, holder] of tokens) {
    const caller = toCaller(holder, 'options.tokens: a token must have')
    const messagePrefix = `options.tokens: the token of ${inspect(caller.owner)} must`
    if (typeof token !== 'string' || !TOKEN.test(token)) {
      throw new TypeError(`${messagePrefix} be a string of letters, digits and -._~+/, with "=" only at its end`)
    }
    // An unset variable that was used as a key.
    if (token === 'undefined' || token === 'null') throw new TypeError(`${messagePrefix} not be "${token}"`)
    callers.set(digestToken(token), caller)
  }
  return (token) => callers.get(digestToken(token))
}

export const digestToken = (token: string): string => hash('sha256', token, 'binary')
