import { createRequire } from 'node:module'
import type { Store } from '../plants/store.ts'
import { memoryStore } from './memory/memory-store.ts'
import { postgresStore } from './postgres/postgres-store.ts'
import { sqliteStore } from './sqlite/sqlite-store.ts'
import { describeError, log } from '../standalone/log.ts'
import { SettingError } from '../standalone/variables.ts'

/** How long a connection to Postgres may take. Less than the service waits for the store, in milliseconds. */
const CONNECT_TIMEOUT = 5000

/**
 * Opens the store that a URL names.
 * @throws SettingError where it cannot be opened
 */
export async function openStore(url: string): Promise<Store> {
  if (url === 'memory:') return memoryStore()
  try {
    return url.startsWith('sqlite:') ? sqliteStore(url.slice('sqlite:'.length)) : await openPostgres(url)
  } catch (error) {
    const problem = `names a store that cannot be opened: ${explain(error as Error)}`
    throw new SettingError('PLANT_STORE_URL', problem, { cause: error })
  }
}

/** The message of a store's error, with that of the driver's error behind it where it is another. */
function explain({ message, cause }: Error): string {
  return cause instanceof Error && !message.includes(cause.message) ? `${message} ${cause.message}` : message
}

async function openPostgres(connectionString: string): Promise<Store> {
  const { Pool } = loadDriver()
  // Keep-alive shows that a server has gone without a word while nothing is asked of it.
  const pool = new Pool({ connectionString, connectionTimeoutMillis: CONNECT_TIMEOUT, keepAlive: true })
  // A connection that breaks while it is idle is replaced; without a listener it would end the process.
  pool.on('error', (error) => log('disconnected', { reason: describeError(error) }))
  const store = postgresStore(pool)
  await store.migrate()
  return { ...store, close: () => pool.end() }
}

/** Only whoever keeps plants in Postgres needs its driver, so it is not installed with this package. */
function loadDriver(): typeof import('pg') {
  try {
    return createRequire(import.meta.url)('pg') as typeof import('pg')
  } catch {
    throw new Error('Its driver is not installed: npm install pg')
  }
}
