import { isBuiltin } from 'node:module'
import type { MaybePromise } from '../legacy/maybe-promise.ts'
import type { Store } from '../legacy/plants/store.ts'
import { memoryStore } from '../legacy/stores/memory-store.ts'
import type { StoreSettings } from './postgres/open-postgres.ts'
import { isSameDatabase } from './postgres/postgres-url.ts'

interface StoreScheme {
  readonly example: string
  readonly unavailableReason?: string | undefined
  readonly pattern: RegExp
  /** Whether all processes that open this URL see the same plants. */
  readonly isShared: (url: string) => boolean
  /** Whether two URLs refer to the same store: only their passwords may differ. @throws Error if a URL is malformed */
  readonly isSame: (one: string, other: string) => boolean
  /** Opens the store. The code for the database is imported only when this function is called. */
  readonly open: (url: string, settings: StoreSettings) => MaybePromise<Store>
}

export const STORE_SCHEMES: readonly StoreScheme[] = [
  { example: 'memory:', pattern: /^memory:$/, isShared: () => false, isSame: Object.is, open: memoryStore },
  {
    example: 'sqlite:plants.db',
    unavailableReason: isBuiltin('node:sqlite') ? undefined : 'SQLite needs Node 22.13 or later',
    // Some drivers accept `sqlite://plants.db`. Here, SQLite would get the path `//plants.db`.
    pattern: /^sqlite:(?!\/\/)[^]/,
    // SQLite URLs may refer to in-memory databases.
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
  // Node 22 warns that SQLite is experimental, but each line of the standalone server's log must be JSON.
  const emitWarning = process.emitWarning.bind(process)
  // `Boolean` serves as a no-op.
  process.emitWarning = Boolean
  process.getBuiltinModule('node:sqlite')
  process.emitWarning = emitWarning
  return sqliteStore(url.slice('sqlite:'.length), {
    // Shorter than the timeout of the store call, so that the client gets 50300 (nothing was done) instead of 50301.
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
