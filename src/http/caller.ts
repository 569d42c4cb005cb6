import type { IncomingMessage } from 'node:http'
import { andThen, withDeadline, type MaybePromise } from '../maybe-promise.ts'
import { isText, TEXT } from '../plants/text.ts'
import { isObject, quote } from '../option-checks.ts'
import { HttpError } from './errors.ts'

/** What a caller may do with the plants of its owner: `read` lists them, `write` also creates and deletes. */
export type Access = 'read' | 'write'

/** The owner that a token stands for, who may write; or an owner with an access. */
export type TokenHolder =
  | string
  | {
      /** Whose plants it has access to: not empty, any well-formed Unicode text without U+0000. */
      readonly owner: string
      /** @default 'write' */
      readonly access?: Access | undefined
    }

/** Who is asking, and what they may do. */
export interface Caller {
  /** Whose plants it has access to. */
  readonly owner: string
  readonly access: Access
}

/** Finds the caller of a token; undefined if the token is refused. */
export type FindCaller = (token: string, request: IncomingMessage) => MaybePromise<Caller | undefined>

/**
 * Finds the owner of a bearer token. It returns that, or `{ owner, access }`; or `null` or `undefined` to refuse the token.
 * If it takes longer than `storeTimeoutMs`, or throws a {@link StoreUnavailableError}, the client gets 503. If it throws
 * any other error, or returns anything else, the client gets 500.
 * @param token as the client sent it; its characters are those of RFC 6750, but nothing else is known of it
 */
export type Authenticate = (token: string, request: IncomingMessage) => MaybePromise<TokenHolder | null | undefined>

/** Makes a host's function safe: limits its time, and checks what it returns. */
export function checkAuthenticate(authenticate: Authenticate, timeoutMs: number): FindCaller {
  return (token, request) => {
    const found = withDeadline(authenticate(token, request), timeoutMs, () => {
      const cause = new Error(`authenticate did not answer within ${timeoutMs} ms`)
      return new HttpError('storeUnavailable', undefined, { cause })
    })
    return andThen(found, (holder) => {
      return holder === null || holder === undefined ? undefined : toCaller(holder, 'authenticate must return')
    })
  }
}

/**
 * Makes the caller of a token from its holder.
 * @param complaint how the message begins
 * @throws TypeError if the holder is none
 */
export function toCaller(holder: unknown, complaint: string): Caller {
  const { owner, access = 'write' } = (isObject(holder) ? holder : { owner: holder }) as {
    owner?: unknown
    access?: unknown
  }
  if (!isText(owner) || owner === '') {
    throw new TypeError(`${complaint} an owner: a non-empty string of ${TEXT}`)
  }
  if (access !== 'read' && access !== 'write') {
    throw new TypeError(`${complaint} an access of "read" or "write", not ${quote(access)}`)
  }
  return { owner, access }
}
