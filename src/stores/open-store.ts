import { isBuiltin } from 'node:module'
import type { MaybePromise } from '../maybe-promise.ts'
import type { Store } from '../plants/store.ts'
import { memoryStore } from './memory-store.ts'
import type { StoreSettings } from './postgres/open-postgres.ts'
import { isSameDatabase } from './postgres/postgres-url.ts'

interface StoreScheme {
  readonly example: string
  readonly unavailableReason?: string | undefined
  readonly pattern: RegExp
  /** Whether programs that open a URL of this scheme have the same plants. */
  readonly isShared: (url: string) => boolean
  /** Whether two URLs name the same store, with another password at most. @throws Error if one is malformed */
  readonly isSame: (one: string, other: string) => boolean
  /** Loads the code of a database only now. */
  readonly open: (url: string, settings: StoreSettings) => MaybePromise<Store>
}

export const STORE_SCHEMES: readonly StoreScheme[] = [
  { example: 'memory:', pattern: /^memory:$/, isShared: () => false, isSame: Object.is, open: memoryStore },
  {
    example: 'sqlite:plants.db',
    unavailableReason: isBuiltin('node:sqlite') ? undefined : 'SQLite needs Node 22.13 or later',
    // Some drivers take slashes after the scheme. Here the path would be an absolute one, or none.
    pattern: /^sqlite:(?!\/\/)[^]/,
    // SQLite has databases in memory too.
    isShared: (url) => !/:memory:|mode=memory|vfs=memdb/.test(url),
    isSame: Object.is,
    open: openSqlite,
  },
  {
    example: 'postgres://user:password@host/database',
    pattern: /^postgres(?:ql)?:\/\/./,
    isShared: () => true,
    isSame: isSameDatabase,
    open: async (...args) => (await import('./postgres/open-postgres.ts')).openPostgres(...args),
  },
]

async function openSqlite(url: string, { migrate, storeTimeoutMs, onEvent }: StoreSettings): Promise<Store> {
  const { sqliteStore } = await import('./sqlite/sqlite-store.ts')
  // Loads SQLite without the warning of Node 22 that it is experimental: each line of a program's log is JSON.
  const emitWarning = process.emitWarning.bind(process)
  // A function that does nothing.
  process.emitWarning = Boolean
  process.getBuiltinModule('node:sqlite')
  process.emitWarning = emitWarning
  return sqliteStore(url.slice('sqlite:'.length), {
    // So that the client learns that nothing was done before its call times out.
    busyTimeoutMs: Math.ceil(0.4 * storeTimeoutMs),
    migrate,
    onWarning: (message) => onEvent('warning', message),
  })
}

const findScheme = (url: string): StoreScheme | undefined => STORE_SCHEMES.find(({ pattern }) => pattern.test(url))

export const schemeOf = (url: string): string => url.slice(0, url.indexOf(':'))
export const isStoreUrl = (url: string): boolean => findScheme(url) !== undefined
export const isSharedStore = (url: string): boolean => findScheme(url)!.isShared(url)

export function isSameStore(one: string, other: string): boolean {
  const { pattern, isSame } = findScheme(one)!
  return pattern.test(other) && isSame(one, other)
}

export async function openStore(url: string, settings: StoreSettings): Promise<Store> {
  const { unavailableReason, open } = findScheme(url)!
  if (unavailableReason !== undefined) throw new Error(unavailableReason)
  return open(url, settings)
}
