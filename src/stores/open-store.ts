import type { MaybePromise, Store } from '../plants/store.ts'
import { memoryStore } from './memory-store.ts'
import type { PostgresSettings } from './postgres/open-postgres.ts'

export { DEFAULT_TABLE, TABLE_NAME } from './postgres/send.ts'

/** The settings of the standalone server that concern its store. Other stores need a part of those for Postgres. */
export type StoreSettings = PostgresSettings

interface StoreScheme {
  readonly example: string
  readonly pattern: RegExp
  /** Opens the store. Only now are the driver and the code that uses it imported. */
  readonly open: (url: string, settings: StoreSettings) => MaybePromise<Store>
}

const STORE_SCHEMES: Readonly<Record<string, StoreScheme>> = {
  memory: { example: 'memory:', pattern: /^memory:$/, open: () => memoryStore() },
  sqlite: {
    example: 'sqlite:plants.db',
    // `sqlite://plants.db` would be the file /plants.db, which is rarely what is meant.
    pattern: /^sqlite:(?!\/\/)[^]/,
    async open(url, { migrate, storeTimeoutMs }) {
      const { sqliteStore, MAX_BUSY_TIMEOUT_MS } = await import('./sqlite/sqlite-store.ts')
      // Shorter than the timeout of the store call, so that clients get 50300 (nothing was done) instead of 50301.
      const busyTimeoutMs = Math.min(MAX_BUSY_TIMEOUT_MS, Math.floor(storeTimeoutMs / 2))
      return sqliteStore(url.slice('sqlite:'.length), { migrate, busyTimeoutMs })
    },
  },
  postgres: {
    example: 'postgres://user:password@host/database',
    pattern: /^postgres(?:ql)?:\/\/./,
    open: async (url, settings) => (await import('./postgres/open-postgres.ts')).openPostgres(url, settings),
  },
}

/** One URL of each scheme, for messages. */
export const STORE_URL_EXAMPLES: readonly string[] = Object.values(STORE_SCHEMES).map(({ example }) => example)

/** Returns the scheme of a store URL: `memory`, `sqlite` or `postgres`. Returns undefined if the URL isn't valid. */
export const schemeOf = (url: string): string | undefined =>
  Object.keys(STORE_SCHEMES).find((scheme) => STORE_SCHEMES[scheme]!.pattern.test(url))

/** @param url a URL that has a scheme */
export const openStore = async (url: string, settings: StoreSettings): Promise<Store> =>
  STORE_SCHEMES[schemeOf(url)!]!.open(url, settings)
