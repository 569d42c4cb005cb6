import { hash } from 'node:crypto'
import { chain, withDeadline, type MaybePromise } from '../maybe-promise.ts'
import { isObject, formatValue } from '../option-checks.ts'
import { isValidText, TEXT_DESCRIPTION } from '../plants/text.ts'
import { B64TOKEN } from './bearer.ts'
import { HttpError } from './errors.ts'
import type { HostRequest } from './transport.ts'

/** The access level of a token: `read` allows listing plants, and `write` also allows creating and deleting them. */
export type Access = 'read' | 'write'

/**
 * Who holds a token: an owner, who then has `write` access, or an object with exactly the members `owner` and `access`.
 */
export type TokenHolder =
  | string
  | {
      /** The owner of the plants: a non-empty string of well-formed Unicode without U+0000. */
      readonly owner: string
      /** The access level of the token. */
      readonly access: Access
    }

export type Caller = Exclude<TokenHolder, string>

export type FindCaller = (token: string, request: HostRequest) => MaybePromise<Caller | undefined>

export function createFindCaller(
  authenticate: (token: string, request: HostRequest) => unknown,
  timeoutMs: number,
): FindCaller {
  return (token, request) => {
    const result = withDeadline(authenticate(token, request), timeoutMs, () => {
      const cause = new Error(`authenticate did not settle within ${timeoutMs} ms`)
      return new HttpError('storeUnavailable', undefined, undefined, cause)
    })
    return chain(result, (holder) => {
      return holder === null || holder === undefined ? undefined : toCaller(holder, 'authenticate must return')
    })
  }
}

/**
 * Validates a token holder.
 * @throws TypeError if the holder is invalid. The message begins with `messagePrefix`, and omits the names of unknown
 * members, which might be tokens.
 */
export function toCaller(holder: unknown, messagePrefix: string): Caller {
  const isRecord = isObject(holder)
  // Only own properties count: an inherited `access` could come from a polluted `Object.prototype`.
  const owner = isRecord ? getOwnProperty(holder, 'owner') : holder
  const access = isRecord ? getOwnProperty(holder, 'access') : 'write'
  if (typeof owner !== 'string') {
    throw new TypeError(`${messagePrefix} an owner: a string, not ${owner === null ? 'null' : typeof owner}`)
  }
  if (!isValidText(owner) || owner === '') {
    throw new TypeError(`${messagePrefix} an owner: a non-empty string of ${TEXT_DESCRIPTION}`)
  }
  if (access !== 'read' && access !== 'write') {
    throw new TypeError(`${messagePrefix} an access of "read" or "write", not ${formatValue(access)}`)
  }
  if (isRecord && Reflect.ownKeys(holder).length > 2) {
    throw new TypeError(`${messagePrefix} an owner and an access, and nothing else`)
  }
  return { owner, access }
}

const getOwnProperty = (holder: object, name: keyof Caller): unknown =>
  Object.hasOwn(holder, name) ? (holder as Record<string, unknown>)[name] : undefined

const TOKEN = new RegExp(`^${B64TOKEN}$`)

/**
 * Creates a function that looks up callers by the digest of their token, so that neither a heap dump nor the duration
 * of a lookup reveals a token.
 * @throws TypeError if a token or its holder is invalid
 */
export function createTokenTable(
  tokens: Iterable<readonly [string, TokenHolder]>,
): (token: string) => Caller | undefined {
  const callers = new Map<string, Caller>()
  for (const [token, holder] of tokens) {
    const caller = toCaller(holder, 'options.tokens: a token must have')
    const messagePrefix = `options.tokens: the token of ${formatValue(caller.owner)} must`
    if (!TOKEN.test(token))
      throw new TypeError(`${messagePrefix} consist of letters, digits and -._~+/, with "=" only at its end`)
    if (UNSET_TOKENS.includes(token)) throw new TypeError(`${messagePrefix} not be "${token}"`)
    callers.set(digestToken(token), caller)
  }
  return (token) => callers.get(digestToken(token))
}

/** The strings that an unset variable becomes in a template literal or as an object key. */
export const UNSET_TOKENS: readonly string[] = ['undefined', 'null']

export const digestToken = (token: string): string => hash('sha256', token, 'binary')
