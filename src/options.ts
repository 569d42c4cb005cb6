import process from 'node:process'
import { createFindCaller, createTokenTable } from './http/caller.ts'
import type { Authenticate, FindCaller, TokenHolder } from './http/caller.ts'
import type { Validate } from './http/new-plant.ts'
import { decodePercent } from './http/percent-encoding.ts'
import type { BaseResponseEvent } from './http/respond.ts'
import type { HostRequest } from './http/transport.ts'
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
import type { Store } from './plants/store.ts'
import { memoryStore } from './stores/memory-store.ts'

/** The options of a service. All have defaults, except `tokens` or `authenticate`. */
export type PlantStoreOptions = CommonOptions & (TokenOptions | AuthenticateOptions)

/** The options of a service whose tokens stand in a table. */
export interface TokenOptions {
  /**
   * The owner of each bearer token: `{ [token]: owner }`, or `{ [token]: { owner, access: 'read' } }` for a token that
   * may only list; or a Map. The service keeps only digests of the tokens.
   */
  readonly tokens: Readonly<Record<string, TokenHolder>> | ReadonlyMap<string, TokenHolder>
  /** Must be absent: there is either a table or a function. */
  readonly authenticate?: undefined
}

/** The options of a service whose host knows the tokens. */
export interface AuthenticateOptions {
  /** Finds the owner of a bearer token. */
  readonly authenticate: Authenticate
  /** Must be absent: there is either a table or a function. */
  readonly tokens?: undefined
}

/** The options that every service may have. */
export interface CommonOptions {
  /** Keeps the plants. @default memoryStore() */
  readonly store?: Store | undefined
  /** The path before `/plants` in `req.url`, such as `/api/v1`. @default '' */
  readonly basePath?: string | undefined
  /** The most bytes that a body may have, 1 to 67,108,864. @default 65_536 */
  readonly maxBodyBytes?: number | undefined
  /** The most plants that one list may hold, at least 1. @default Infinity */
  readonly maxLimit?: number | undefined
  /**
   * The most long lists of one owner that are read at once, at least 1. The others wait for at most `storeTimeoutMs`. A
   * list is long if it does not fit a page of the store (`MAX_PAGE`, `MAX_PAGE_BYTES`).
   * @default 32
   */
  readonly maxListsPerOwner?: number | undefined
  /** How long a call of the store, or of `authenticate`, may take, in milliseconds, at least 1. @default 10_000 */
  readonly storeTimeoutMs?: number | undefined
  /**
   * Checks a plant by the host's own rules. Returns a message for the client if the plant breaks a rule, or nothing, or
   * a promise of either. The plant isn't created if there is a message (error 40002), if the function takes longer than
   * `storeTimeoutMs` or throws a {@link StoreUnavailableError} (error 50300), or if it throws or returns anything else
   * (error 50000).
   */
  readonly validate?: Validate | undefined
  /**
   * Gets the error behind each response with status 500 or 503, and behind each that breaks off half-way. Its own errors
   * are ignored. If there is none, the first such error is a warning of the process.
   */
  readonly onError?: ((error: unknown, request: HostRequest) => unknown) | undefined
  /** Gets an event for each response, once that is handed over or the client has gone. Its own errors are ignored. */
  readonly onResponse?: ((event: ResponseEvent) => unknown) | undefined
}

/** An event for {@link CommonOptions.onResponse}. */
export interface ResponseEvent extends BaseResponseEvent {
  /** The path of the resource, as the interface description writes it; undefined if there is none. */
  readonly resource: ResourcePath | undefined
  /** The owner who asked; undefined if the token was not accepted. */
  readonly owner: string | undefined
}

type OptionalCallback = 'validate' | 'onResponse'

export interface ResolvedOptions
  extends Resolved<Omit<CommonOptions, OptionalCallback>>, Required<Pick<CommonOptions, OptionalCallback>> {
  readonly findCaller: FindCaller
}

/** Whatever a body of this size holds, reading it fits V8's heap of 4 GiB, and every store can keep its plant. */
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

/** @throws TypeError that names the option and quotes what it got */
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

/** The `onError` of a host that has none: otherwise a 500 would leave no trace. */
function createDefaultOnError(): ResolvedOptions['onError'] {
  let hasWarned = false
  return (error, { headers }) => {
    if (hasWarned) return
    hasWarned = true
    const message = isError(error) ? error.message : formatValue(error)
    // An error of authenticate may quote the token.
    const token = /\S+$/.exec(headers.authorization ?? '')?.[0]
    const redactedMessage = token === undefined ? message : message.replaceAll(token, '…')
    const hint = 'createPlantStore has no onError, which is told of each failure'
    process.emitWarning(`A request failed: ${redactedMessage} (${hint})`, 'PlantStoreWarning')
  }
}

function resolveFindCaller(
  tokens: PlantStoreOptions['tokens'],
  authenticate: PlantStoreOptions['authenticate'],
  timeoutMs: number,
): FindCaller {
  if (tokens !== undefined && authenticate !== undefined) {
    throw new TypeError('options must have either tokens or authenticate, not both')
  }
  if (tokens === undefined) {
    const checkedAuthenticate = checkFunction('authenticate', authenticate)
    if (checkedAuthenticate === undefined) throw new TypeError('options must have tokens or authenticate: who may ask?')
    return createFindCaller(checkedAuthenticate, timeoutMs)
  }
  // It may be a token, so the message has only its type.
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
  if (!isValid)
    throw invalidOption('options.basePath', 'a path such as "/api/v1", without a slash at its end', basePath)
  return basePath
}

function checkFunction<F>(name: string, value: F): F {
  if (value === undefined || typeof value === 'function') return value
  throw invalidOption(`options.${name}`, 'a function', value)
}
