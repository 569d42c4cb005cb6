import process from 'node:process'
import { createAuthenticator, createTokenTable, type Authenticator, type TokenHolder } from './http/authentication.ts'
import type { HostRequest } from './http/body.ts'
import type { ErrorCode } from './http/errors.ts'
import type { ResourcePath } from './http/router.ts'
import { DEFAULT_STORE_TIMEOUT_MS, showValue } from './plants/checked-store.ts'
import type { NewPlant } from './plants/plant.ts'
import type { MaybePromise, Store } from './plants/store.ts'
import { memoryStore } from './stores/memory-store.ts'

/** Options for `createPlantStore`. Exactly one of `tokens` and `authenticate` is required. */
export type PlantStoreOptions = CommonOptions & (TokenOptions | AuthenticateOptions)

/** Options with a fixed set of tokens. */
export interface TokenOptions {
  /**
   * Maps each bearer token to its owner, `{ [token]: owner }`, or to an owner and an access level,
   * `{ [token]: { owner, access: 'read' } }`. Can be an object or a Map. The service keeps only digests of the tokens.
   */
  readonly tokens: Readonly<Record<string, TokenHolder>> | ReadonlyMap<string, TokenHolder>
  /** Can't be combined with `tokens`. */
  readonly authenticate?: undefined
}

/** Options with a function that checks tokens. */
export interface AuthenticateOptions {
  /** Returns the owner of a bearer token. */
  readonly authenticate: Hooks['authenticate']
  /** Can't be combined with `authenticate`. */
  readonly tokens?: undefined
}

/** Options other than `tokens` and `authenticate`. All of them have defaults. */
export interface CommonOptions extends OptionalHooks {
  /** Stores the plants. @default memoryStore() */
  readonly store?: Store | undefined
  /** The part of the path in `req.url` that precedes `/plants`, such as `/api/v1`. @default '' */
  readonly basePath?: string | undefined
  /** The maximum size of a request body in bytes, from 1 to 67,108,864. @default 65_536 */
  readonly maxBodyBytes?: number | undefined
  /** The maximum number of plants in one list response, at least 1. @default Infinity */
  readonly maxLimit?: number | undefined
  /**
   * The timeout of each call to the store, `authenticate` or `validate`, in milliseconds, at least 1.
   * @default 10_000
   */
  readonly storeTimeoutMs?: number | undefined
}

/**
 * The functions among the options. TypeScript lets parameters of methods have narrower types, so a host whose requests
 * are always of one class can declare it: `request: express.Request`.
 */
export interface Hooks {
  /**
   * Checks a bearer token. Returns its owner, or `{ owner, access }`; or `null` or `undefined` to reject the token; or
   * a promise for one of these. The client gets error 50300 if the function takes longer than `storeTimeoutMs` or
   * throws a {@link StoreUnavailableError}, and error 50000 if it throws or returns anything else.
   * @param token the token that the client sent; the service has checked only its syntax (RFC 6750 section 2.1)
   * @param request the request that contains the token
   */
  authenticate(token: string, request: HostRequest): MaybePromise<TokenHolder | null | undefined>
  /**
   * Checks a new plant against the host's own rules. Returns a message for the client if the plant breaks a rule,
   * nothing otherwise, or a promise for either. The plant isn't created if there is a message (error 40002), if the
   * function takes longer than `storeTimeoutMs` or throws a {@link StoreUnavailableError} (error 50300), or if it
   * throws or returns anything else (error 50000).
   */
  validate(plant: NewPlant, context: ValidationContext): MaybePromise<string | null | undefined>
  /**
   * Called with the cause of each response with status 500 or 503, and with the error of each list that fails after its
   * first byte was sent. Errors that it throws are ignored.
   * @default emits a process warning for the first error
   */
  onError(error: unknown, request: HostRequest): unknown
  /**
   * Called for each response, once it has been sent or the client has disconnected. Errors that it throws are ignored.
   */
  onResponse(event: ResponseEvent): unknown
}

/** The hooks that every service can have. */
export type OptionalHooks = {
  readonly [Name in 'validate' | 'onError' | 'onResponse']?: Hooks[Name] | undefined
}

/** The second argument of {@link Hooks.validate}. */
export interface ValidationContext {
  /** The owner of the plant. */
  readonly owner: string
  /** The request that creates the plant. */
  readonly request: HostRequest
}

/** The argument of {@link Hooks.onResponse}: describes a response and how much of it was sent. */
export interface ResponseEvent {
  /** The request that the response belongs to. */
  readonly request: HostRequest
  /** The path of the resource, as in the interface description; undefined if the request's path isn't a resource. */
  readonly resource: ResourcePath | undefined
  /** The owner that the token identifies; undefined if there is no valid token. */
  readonly owner: string | undefined
  /** The status of the response, even if the client disconnected before the response was sent. */
  readonly status: number
  /** The `error` member of an error response, such as 40401; undefined for other responses. */
  readonly error: ErrorCode | undefined
  /** The number of bytes of the body that were sent; 0 if the client disconnected before any were sent. */
  readonly bytes: number
  /** Whether the complete response was sent. If not, the client disconnected or the response was aborted. */
  readonly complete: boolean
  /** The time in milliseconds from when the service received the request header until the response ended. */
  readonly durationMs: number
}

export interface ResolvedOptions extends OptionalHooks, Readonly<typeof DEFAULT_OPTIONS> {
  readonly authenticate: Authenticator
  readonly store: Store
  readonly basePath: string
  readonly onError: Hooks['onError']
}

/** The defaults of the numeric options. */
export const DEFAULT_OPTIONS: { maxBodyBytes: number; maxLimit: number; storeTimeoutMs: number } = {
  maxBodyBytes: 65_536,
  maxLimit: Infinity,
  storeTimeoutMs: DEFAULT_STORE_TIMEOUT_MS,
}

/**
 * The maximum of each numeric option. A body of 64 MiB can be parsed within V8's heap limit of 4 GiB, and every store can
 * store the plant in it. Node's timers support delays up to 2^31 - 1 ms.
 */
export const MAX_VALUES = { maxBodyBytes: 2 ** 26, maxLimit: Number.MAX_SAFE_INTEGER, storeTimeoutMs: 2 ** 31 - 1 }

const FUNCTION_NAMES = ['authenticate', 'validate', 'onError', 'onResponse'] as const
const NUMBER_NAMES = Object.keys(DEFAULT_OPTIONS) as (keyof typeof DEFAULT_OPTIONS)[]
const OPTION_NAMES: readonly string[] = ['tokens', 'store', 'basePath', ...FUNCTION_NAMES, ...NUMBER_NAMES]

/** @throws TypeError that names the invalid option and its value, but never a token */
export function resolveOptions(options: PlantStoreOptions): ResolvedOptions {
  checkOptions(options)
  const { store = memoryStore(), basePath = '', validate, onError = createDefaultOnError(), onResponse } = options
  const numbers = { ...DEFAULT_OPTIONS }
  for (const name of NUMBER_NAMES) numbers[name] = options[name] ?? DEFAULT_OPTIONS[name]
  const authenticate =
    options.authenticate === undefined
      ? createTokenTable(options.tokens instanceof Map ? options.tokens : Object.entries(options.tokens))
      : createAuthenticator(options.authenticate, numbers.storeTimeoutMs)
  return { ...numbers, authenticate, store, basePath, validate, onError, onResponse }
}

function checkOptions(options: unknown): void {
  if (!isObject(options)) throw invalidOption('options', 'an object', options)
  const unknownName = Object.keys(options).find((name) => !OPTION_NAMES.includes(name))
  if (unknownName !== undefined) throw new TypeError(`unknown option "${unknownName}"`)

  for (const name of FUNCTION_NAMES) {
    const value = options[name]
    if (value !== undefined && typeof value !== 'function') throw invalidOption(`options.${name}`, 'a function', value)
  }
  for (const name of NUMBER_NAMES) {
    const value = options[name]
    if (value === undefined || value === DEFAULT_OPTIONS[name]) continue
    if (!Number.isSafeInteger(value) || Number(value) < 1 || Number(value) > MAX_VALUES[name]) {
      throw invalidOption(`options.${name}`, `a whole number from 1 to ${MAX_VALUES[name]}`, value)
    }
  }
  const { store, basePath = '', tokens, authenticate } = options
  if (store !== undefined) checkStore(store)
  if (typeof basePath !== 'string' || !/^(?:\/[^/?#%\s]+)*$/.test(basePath)) {
    throw invalidOption('options.basePath', 'a path such as "/api/v1", without a trailing slash', basePath)
  }
  if (tokens !== undefined && authenticate !== undefined) {
    throw new TypeError('`tokens` and `authenticate` cannot be combined: set only one of them')
  }
  if (authenticate !== undefined) return
  if (tokens === undefined) throw new TypeError('either `tokens` or `authenticate` is required')
  // The value might contain tokens, so the message contains only its type.
  if (!isObject(tokens) || (Symbol.iterator in tokens && !(tokens instanceof Map))) {
    const type = Array.isArray(tokens) ? 'array' : tokens === null ? 'null' : typeof tokens
    throw new TypeError(`options.tokens must be a plain object or a Map, not of type ${type}`)
  }
}

function checkStore(store: unknown): void {
  if (!isObject(store)) throw invalidOption('options.store', 'a store', store)
  for (const name of ['create', 'list', 'delete', 'ping', 'close'] satisfies (keyof Store)[]) {
    const isOptional = name === 'ping' || name === 'close'
    const isValid = typeof store[name] === 'function' || (isOptional && store[name] === undefined)
    if (!isValid) throw invalidOption(`options.store.${name}`, 'a function', store[name])
  }
}

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null

const invalidOption = (name: string, expected: string, actual: unknown): TypeError =>
  new TypeError(`${name} must be ${expected}, not ${showValue(actual)}`)

/** Returns a function that emits a process warning when it is first called. */
export function warnOnce(): (message: string) => void {
  let hasWarned = false
  return (message) => {
    if (!hasWarned) process.emitWarning(message, 'PlantStoreWarning')
    hasWarned = true
  }
}

/** Creates the default `onError`, so that a 500 response leaves a trace even if the host didn't set the option. */
function createDefaultOnError(): Hooks['onError'] {
  const warn = warnOnce()
  return (error, { headers }) => {
    const message = error instanceof Error ? error.message : showValue(error)
    // An error from `authenticate` might contain the token.
    const token = /\S+$/.exec(headers.authorization ?? '')?.[0]
    const redacted = token === undefined ? message : message.replaceAll(token, '…')
    warn(`A request failed: ${redacted} (set the option onError to get every such error)`)
  }
}
