import { isBuiltin } from 'node:module'
import type { MaybePromise } from '../maybe-promise.ts'
import type { Store } from '../plants/store.ts'
import { memoryStore } from './memory/memory-store.ts'
import { openPostgres, type PostgresSettings } from './postgres/open-postgres.ts'
import { isSameDatabase } from './postgres/postgres-url.ts'
import { sqliteStore } from './sqlite/sqlite-store.ts'

/** The stores that a URL of one scheme can name. */
export interface StoreScheme {
  /** Such a URL, for people. */
  readonly example: string
  /** Every such URL. */
  readonly form: RegExp
  /** @throws if the store cannot be opened */
  readonly open: (url: string, settings: StoreSettings) => MaybePromise<Store>
}

/** What a program has set for its store. */
export type StoreSettings = PostgresSettings

const POSTGRES: StoreScheme = {
  example: 'postgres://user:password@host/database',
  form: /^postgres(?:ql)?:\/\/./,
  open: openPostgres,
}

/** The stores that a URL can name, by the scheme of the URL. */
export const STORE_SCHEMES: ReadonlyMap<string, StoreScheme> = new Map<string, StoreScheme>([
  ['memory', { example: 'memory:', form: /^memory:$/, open: memoryStore }],
  [
    'sqlite',
    // With slashes after the scheme, as some drivers have it, the path would be an absolute one or none.
    { example: 'sqlite:plants.db', form: /^sqlite:(?!\/\/)./, open: openSqlite },
  ],
  ['postgres', POSTGRES],
  ['postgresql', POSTGRES],
])

function openSqlite(url: string, { migrate, storeTimeoutMs, onEvent }: StoreSettings): Store {
  // The store would advise to pass a handle, which nobody can pass to the program.
  if (!isBuiltin('node:sqlite')) throw new Error('SQLite needs Node 22.13 or later.')
  return sqliteStore(url.slice('sqlite:'.length), {
    // So a client is told that nothing was carried out, before its call is over.
    busyTimeoutMs: Math.ceil(0.4 * storeTimeoutMs),
    migrate,
    onWarning: (message) => onEvent('warning', message),
  })
}

/** The scheme of a URL that names a store. */
export function schemeOf(url: string): string {
  return url.slice(0, url.indexOf(':'))
}

/** Whether a URL names a store. It is not opened. */
export function isStoreUrl(url: string): boolean {
  return STORE_SCHEMES.get(schemeOf(url))?.form.test(url) === true
}

/**
 * Whether two URLs name the same store, with another password at most.
 * @throws Error if one of them is malformed
 */
export function isSameStore(one: string, other: string): boolean {
  return one === other || ([one, other].every((url) => POSTGRES.form.test(url)) && isSameDatabase(one, other))
}

/**
 * Opens the store that a URL names.
 * @param url must be one, as {@link isStoreUrl} says
 * @throws StoreUnavailableError if waiting may help
 * @throws Error if it does not
 */
export async function openStore(url: string, settings: StoreSettings): Promise<Store> {
  return STORE_SCHEMES.get(schemeOf(url))!.open(url, settings)
}
