import type { MaybePromise } from '../maybe-promise.ts'
import type { Store } from '../plants/store.ts'
import { memoryStore } from './memory/memory-store.ts'
import { openPostgres, type PostgresSettings as StoreSettings } from './postgres/open-postgres.ts'
import { isSameDatabase } from './postgres/postgres-url.ts'
import { sqliteStore } from './sqlite/sqlite-store.ts'

const POSTGRES = /^postgres(?:ql)?:\/\/./

/** What a URL can name, by its scheme. */
export const STORE_SCHEMES: readonly {
  /** A URL of this scheme, for people. */
  readonly example: string
  /** Matches the URLs of this scheme, and of no other. */
  readonly form: RegExp
  /** @throws if the store cannot be opened */
  readonly open: (url: string, settings: StoreSettings) => MaybePromise<Store>
}[] = [
  { example: 'memory:', form: /^memory:$/, open: memoryStore },
  // Some drivers take slashes after the scheme. Here the path would be an absolute one, or none.
  { example: 'sqlite:plants.db', form: /^sqlite:(?!\/\/)./, open: openSqlite },
  { example: 'postgres://user:password@host/database', form: POSTGRES, open: openPostgres },
]

function openSqlite(url: string, { migrate, storeTimeoutMs, onEvent }: StoreSettings): Store {
  return sqliteStore(url.slice('sqlite:'.length), {
    // So that the client learns that nothing was carried out before its call times out.
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
  return STORE_SCHEMES.some(({ form }) => form.test(url))
}

/**
 * Whether two URLs name the same store, with another password at most.
 * @throws Error if one of them is malformed
 */
export function isSameStore(one: string, other: string): boolean {
  return one === other || ([one, other].every((url) => POSTGRES.test(url)) && isSameDatabase(one, other))
}

/**
 * Opens the store that a URL names.
 * @param url one that {@link isStoreUrl} accepts
 * @throws StoreUnavailableError if waiting may help
 * @throws Error if it does not
 */
export async function openStore(url: string, settings: StoreSettings): Promise<Store> {
  return STORE_SCHEMES.find(({ form }) => form.test(url))!.open(url, settings)
}
