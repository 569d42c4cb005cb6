import { createRequire } from 'node:module'
import type { Store } from '../../plants/store.ts'
import { postgresStore } from './postgres-store.ts'

/** How long a connection to Postgres may take. Less than the service waits for the store. */
const CONNECT_TIMEOUT_MS = 5000

/**
 * Opens the plants in the database that a URL names, and makes their table if there is none.
 * @param onDisconnect is told of each connection that broke while it was idle
 * @throws if the driver is not installed, or the database cannot be used
 */
export async function openPostgres(connectionString: string, onDisconnect: (error: Error) => void): Promise<Store> {
  const { Pool } = loadDriver()
  // Keep-alive shows that a server has gone without a word while nothing is asked of it.
  const pool = new Pool({ connectionString, connectionTimeoutMillis: CONNECT_TIMEOUT_MS, keepAlive: true })
  // The pool replaces a connection that breaks while it is idle; without a listener the error would end the process.
  pool.on('error', onDisconnect)
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
