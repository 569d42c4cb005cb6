import process from 'node:process'
import { createFindCaller, createTokenTable, type FindCaller, type TokenHolder } from './http/caller.ts'
import type { ValidationContext } from './http/new-plant.ts'
import { decodePercent } from './http/percent-encoding.ts'
import type { BaseResponseEvent } from './http/respond.ts'
import type { HostRequest } from './http/transport.ts'
import type { MaybePromise } from './maybe-promise.ts'
import type { ResourcePath } from './operations.ts'
import {
  isError,
  isObject,
  formatValue,
  readOptions,
  withDefaults,
  invalidOption,
  type Resolved,
} from './option-checks.ts'
import { STORE_METHODS } from './plants/checked-store.ts'
import type { NewPlant } from './plants/plant.ts'
import type { Store } from './plants/store.ts'
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
export interface CommonOptions {
  /** Stores the plants. @default memoryStore() */
  readonly store?: Store | undefined
  /** The part of the path in `req.url` that precedes `/plants`, such as `/api/v1`. @default '' */
  readonly basePath?: string | undefined
  /** The maximum size of a request body in bytes, from 1 to 67,108,864. @default 65_536 */
  readonly maxBodyBytes?: number | undefined
  /** The maximum number of plants in one list response, at least 1. @default Infinity */
  readonly maxLimit?: number | undefined
  /**
   * The maximum number of long lists of one owner that are read at the same time, at least 1. Further list requests
   * wait, and get error 50300 after `storeTimeoutMs`. A list is long if it doesn't fit in one store page (`MAX_PAGE`
   * plants with `MAX_PAGE_BYTES` of text).
   * @default 32
   */
  readonly maxListsPerOwner?: number | undefined
  /**
   * The timeout of each call to the store, `authenticate` or `validate`, in milliseconds, at least 1.
   * @default 10_000
   */
  readonly storeTimeoutMs?: number | undefined
  /** Checks a new plant against the host's own rules. */
  readonly validate?: Hooks['validate'] | undefined
  /**
   * Called with the cause of each error 500 or 503.
   * @default emits a process warning for the first error
   */
  readonly onError?: Hooks['onError'] | undefined
  /** Called for each response. */
  readonly onResponse?: Hooks['onResponse'] | undefined
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
   */
  onError(error: unknown, request: HostRequest): unknown
  /**
   * Called for each response, once it has been sent or the client has disconnected. Errors that it throws are ignored.
   */
  onResponse(event: ResponseEvent): unknown
}

/** The type of the option {@link AuthenticateOptions.authenticate}. */
export type Authenticate = Hooks['authenticate']

/** The type of the option {@link CommonOptions.validate}. */
export type Validate = Hooks['validate']

/** The argument of {@link Hooks.onResponse}. */
export interface ResponseEvent extends BaseResponseEvent {
  /** The path of the resource, as in the interface description; undefined if the request's path isn't a resource. */
  readonly resource: ResourcePath | undefined
  /** The owner that the token identifies; undefined if there is no valid token. */
  readonly owner: string | undefined
}

type OptionalCallback = 'validate' | 'onResponse'

export interface ResolvedOptions
  extends Resolved<Omit<CommonOptions, OptionalCallback>>, Required<Pick<CommonOptions, OptionalCallback>> {
  readonly findCaller: FindCaller
}

/** Any body of this size can be parsed within V8's heap limit of 4 GiB, and every store can store the plant in it. */
export const MAX_BODY_BYTES: number = 2 ** 26

type NumericOptions = Resolved<Pick<CommonOptions, 'maxBodyBytes' | 'maxLimit' | 'maxListsPerOwner' | 'storeTimeoutMs'>>

export const DEFAULT_OPTIONS: NumericOptions = {
  maxBodyBytes: 65_536,
  maxLimit: Infinity,
  maxListsPerOwner: 32,
  storeTimeoutMs: 10_000,
}

const OPTION_NAMES: readonly (keyof PlantStoreOptions)[] = [
  ...(['tokens', 'authenticate', 'store', 'basePath', 'validate', 'onError', 'onResponse'] as const),
  ...(Object.keys(DEFAULT_OPTIONS) as (keyof NumericOptions)[]),
]

/** @throws TypeError that names the invalid option and its value, but never a token */
export function resolveOptions(options: PlantStoreOptions): ResolvedOptions {
  const provided = readOptions(options, OPTION_NAMES)
  const { tokens, authenticate, store, basePath, validate, onError, onResponse, ...numericOptions } = provided
  const numbers = withDefaults(numericOptions, DEFAULT_OPTIONS, { maxBodyBytes: { min: 1, max: MAX_BODY_BYTES } })
  return {
    ...numbers,
    findCaller: resolveFindCaller(tokens, authenticate, numbers.storeTimeoutMs),
    store: store === undefined ? memoryStore() : checkStoreMethods(store),
    basePath: basePath === undefined ? '' : checkBasePath(basePath),
    validate: checkFunction('validate', validate),
    onError: checkFunction('onError', onError) ?? createDefaultOnError(),
    onResponse: checkFunction('onResponse', onResponse),
  }
}

/** Creates the default `onError`, so that a 500 response leaves a trace even if the host didn't set the option. */
function createDefaultOnError(): ResolvedOptions['onError'] {
  let hasWarned = false
  return (error, { headers }) => {
    if (hasWarned) return
    hasWarned = true
    const message = isError(error) ? error.message : formatValue(error)
    // An error from `authenticate` might contain the token.
    const token = /\S+$/.exec(headers.authorization ?? '')?.[0]
    const redactedMessage = token === undefined ? message : message.replaceAll(token, '…')
    const hint = 'set the option onError to get every such error'
    process.emitWarning(`A request failed: ${redactedMessage} (${hint})`, 'PlantStoreWarning')
  }
}

function resolveFindCaller(
  tokens: PlantStoreOptions['tokens'],
  authenticate: PlantStoreOptions['authenticate'],
  timeoutMs: number,
): FindCaller {
  if (tokens !== undefined && authenticate !== undefined) {
    throw new TypeError('`tokens` and `authenticate` cannot be combined: set only one of them')
  }
  if (tokens === undefined) {
    const checkedAuthenticate = checkFunction('authenticate', authenticate)
    if (checkedAuthenticate === undefined) throw new TypeError('either `tokens` or `authenticate` is required')
    return createFindCaller(checkedAuthenticate, timeoutMs)
  }
  // The value might be a token, so the message contains only its type.
  if (!isObject(tokens)) throw new TypeError(`options.tokens must be an object or a Map, not of type ${typeof tokens}`)
  return createTokenTable(Symbol.iterator in tokens ? tokens : Object.entries(tokens))
}

function checkStoreMethods(store: Store): Store {
  if (!isObject(store)) throw invalidOption('options.store', 'a store', store)
  for (const [name, requirement] of Object.entries(STORE_METHODS)) {
    const method: unknown = Reflect.get(store, name)
    const isAbsent = requirement === 'optional' && method === undefined
    if (typeof method !== 'function' && !isAbsent) throw invalidOption(`options.store.${name}`, 'a function', method)
  }
  return store
}

function checkBasePath(basePath: string): string {
  const isValid =
    typeof basePath === 'string' && /^(?:\/[^/?#\s]+)*$/.test(basePath) && decodePercent(basePath) !== undefined
  if (!isValid) throw invalidOption('options.basePath', 'a path such as "/api/v1", without a trailing slash', basePath)
  return basePath
}

function checkFunction<F>(name: string, value: F): F {
  if (value === undefined || typeof value === 'function') return value
  throw invalidOption(`options.${name}`, 'a function', value)
}
