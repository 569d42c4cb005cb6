import { hash } from 'node:crypto'
import { chain, withDeadline, type MaybePromise } from '../maybe-promise.ts'
import { isObject, formatValue } from '../option-checks.ts'
import { isValidText, TEXT_DESCRIPTION } from '../plants/text.ts'
import { B64TOKEN } from './bearer.ts'
import { HttpError } from './errors.ts'
import type { HostRequest } from './transport.ts'

/** What a caller may do with the plants of its owner: `read` lists them, `write` also creates and deletes. */
export type Access = 'read' | 'write'

/** The owner that a token stands for, who may write; or an owner with an access, and nothing else. */
export type TokenHolder =
  | string
  | {
      /** Whose plants it has access to: not empty, any well-formed Unicode text without U+0000. */
      readonly owner: string
      /** What the token may do. */
      readonly access: Access
    }

export type Caller = Exclude<TokenHolder, string>

export type FindCaller = (token: string, request: HostRequest) => MaybePromise<Caller | undefined>

/**
 * Finds the owner of a bearer token. Returns the owner, or `{ owner, access }`; or `null` or `undefined` to refuse the
 * token. The client gets 503 (error 50300) if it takes longer than `storeTimeoutMs` or throws a
 * {@link StoreUnavailableError}, and 500 if it throws another error or returns anything else.
 * @param token as the client sent it: only its characters are checked (RFC 6750 section 2.1)
 */
export type Authenticate = (token: string, request: HostRequest) => MaybePromise<TokenHolder | null | undefined>

export function createFindCaller(authenticate: Authenticate, timeoutMs: number): FindCaller {
  return (token, request) => {
    const result = withDeadline(authenticate(token, request), timeoutMs, () => {
      const cause = new Error(`authenticate did not answer within ${timeoutMs} ms`)
      return new HttpError('storeUnavailable', undefined, undefined, cause)
    })
    return chain(result, (holder) => {
      return holder === null || holder === undefined ? undefined : toCaller(holder, 'authenticate must return')
    })
  }
}

/** @throws TypeError that begins with `complaint` if this is no holder of a token; names no other member: it may be one */
export function toCaller(holder: unknown, messagePrefix: string): Caller {
  const isRecord = isObject(holder)
  // An access that the holder doesn't have itself could come from a polluted `Object.prototype`.
  const owner = isRecord ? getOwnProperty(holder, 'owner') : holder
  const access = isRecord ? getOwnProperty(holder, 'access') : 'write'
  if (!isValidText(owner) || owner === '')
    throw new TypeError(`${messagePrefix} an owner: a non-empty string of ${TEXT_DESCRIPTION}`)
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

/** By the digests of the tokens: neither a heap dump nor the time of a look-up betrays one. @throws TypeError */
export function createTokenTable(
  tokens: Iterable<readonly [string, TokenHolder]>,
): (token: string) => Caller | undefined {
  const callers = new Map<string, Caller>()
  for (const [token, holder] of tokens) {
    const caller = toCaller(holder, 'options.tokens: a token must have')
    const messagePrefix = `options.tokens: the token of ${formatValue(caller.owner)} must`
    if (!TOKEN.test(token)) throw new TypeError(`${messagePrefix} be letters, digits and -._~+/, then any "="`)
    if (UNSET_TOKENS.includes(token)) throw new TypeError(`${messagePrefix} not be "${token}"`)
    callers.set(digestToken(token), caller)
  }
  return (token) => callers.get(digestToken(token))
}

/** An unset variable becomes one of these texts in a template. */
export const UNSET_TOKENS: readonly string[] = ['undefined', 'null']

export const digestToken = (token: string): string => hash('sha256', token, 'binary')
