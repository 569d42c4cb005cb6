import type { Store } from '../store.ts'
import { describeError, log } from './log.ts'
import { SettingError } from './variables.ts'

const VARIABLE = 'PLANT_STORE_URL'

/** How long a connection to Postgres may take. Less than the service waits for the store, in milliseconds. */
const CONNECT_TIMEOUT = 5000

/**
 * Opens the store that a URL names. Its module is loaded only now, so that no start waits for the others.
 * @throws SettingError where the store cannot be opened
 */
export async function openStore(url: string): Promise<Store> {
  if (url.startsWith('sqlite:')) return openSqlite(url.slice('sqlite:'.length))
  if (url.startsWith('postgres')) return openPostgres(url)
  const { memoryStore } = await import('../stores/memory.ts')
  return memoryStore()
}

async function openSqlite(path: string): Promise<Store> {
  const { sqliteStore } = await import('../stores/sqlite.ts')
  try {
    return sqliteStore(path)
  } catch (cause) {
    throw new SettingError(VARIABLE, `names what cannot be opened: ${(cause as Error).message}`, { cause })
  }
}

async function openPostgres(connectionString: string): Promise<Store> {
  const pg = await import('pg').catch((cause: unknown) => {
    throw new SettingError(VARIABLE, 'names Postgres, whose driver is not installed: npm install pg', { cause })
  })
  const { postgresStore } = await import('../stores/postgres.ts')
  const pool = new pg.default.Pool({ connectionString, connectionTimeoutMillis: CONNECT_TIMEOUT })
  // A connection that breaks while it is idle is replaced; without a listener it would end the process.
  pool.on('error', (error) => log('disconnected', { reason: describeError(error) }))
  const store = postgresStore(pool)
  try {
    await store.migrate()
  } catch (error) {
    const { cause = error } = error as Error
    const { code, message } = cause as NodeJS.ErrnoException
    throw new SettingError(VARIABLE, `names a database that cannot be used: ${message || code}`, { cause: error })
  }
  return { ...store, close: () => pool.end() }
}
