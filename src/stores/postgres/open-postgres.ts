import { createRequire } from 'node:module'
import { setDefaultAutoSelectFamilyAttemptTimeout } from 'node:net'
import { performance } from 'node:perf_hooks'
import process from 'node:process'
import { setTimeout as sleep } from 'node:timers/promises'
import type { PoolClient, PoolConfig } from 'pg'
import { isUnavailable, StoreUnavailableError, type Store } from '../../plants/store.ts'
import { postgresStore } from './postgres-store.ts'
import { applyMigrations, type ConnectionPool } from './send.ts'

/** The settings of the standalone server that concern its store. */
export interface PostgresSettings {
  /** Whether to create the table or the columns that are missing. */
  readonly migrate: boolean
  readonly storeTimeoutMs: number
  readonly postgresTable: string
  readonly postgresPoolSize: number
  /** Returns the URL of the store. If the URL is in a file, its password can change. */
  readonly currentUrl: () => string
  readonly onEvent: (event: string, reason: unknown) => void
}

/**
 * Opens the store of the standalone server. While the database is unavailable, the methods of the store throw
 * StoreUnavailableError.
 * @throws Error if waiting can't help
 */
export async function openPostgres(url: string, settings: PostgresSettings): Promise<Store> {
  const { migrate, storeTimeoutMs, postgresTable: table, postgresPoolSize: poolSize, currentUrl, onEvent } = settings
  const { Pool, parseUrl } = loadDriver()
  // Node tries the next address of a host after this time. By default, that's less than a long round trip takes.
  setDefaultAutoSelectFamilyAttemptTimeout(1000)
  // Connecting and a statement together take less than `storeTimeoutMs`.
  const timeoutMs = Math.ceil(0.45 * storeTimeoutMs)
  const pool = new Pool({
    application_name: 'plant-store',
    connectionTimeoutMillis: Math.ceil(0.5 * storeTimeoutMs),
    statement_timeout: Math.ceil(0.35 * storeTimeoutMs),
    query_timeout: timeoutMs,
    keepAlive: true,
    keepAliveInitialDelayMillis: 10_000,
    // With TLS, connecting to a distant server takes up to seven round trips.
    idleTimeoutMillis: 0,
    // The pool follows a failover, and a new address of the host name.
    maxLifetimeSeconds: 300,
    ...parseUrl(url),
    max: poolSize,
    // Without a password, let the server reject a wrong one: `pg` leaves the connection open if this function throws.
    password: () => findPassword() ?? 'missing',
    verify: (client, done) => void prepare(client).then(() => done(), done),
  })
  pool.on('error', (error) => onEvent('disconnected', error))
  const findPassword = (): string | undefined => parseUrl(currentUrl()).password || process.env['PGPASSWORD']

  /** Checks a new connection. Creates the table if it's missing, so that the server can start before the database. */
  async function prepare(client: PoolClient): Promise<void> {
    // Without a listener, an error of the connection would crash the process.
    client.on('error', () => undefined)
    const { rows } = await client.query<{ transaction_read_only: string }>('SHOW transaction_read_only')
    // A standby would return outdated lists.
    if (rows[0]?.transaction_read_only === 'on') throw new StoreUnavailableError('The server is read-only.')
    if (migrate) await applyMigrations(client, table)
  }

  /** Sends a statement. Adapts the pool to PgBouncer, and to a server that accepts fewer connections. */
  const query: ConnectionPool['query'] = async (statement) => {
    const { options } = pool
    for (const deadline = performance.now() + timeoutMs; ;) {
      const { statement_timeout: timeout } = options
      try {
        return await pool.query(statement)
      } catch (error) {
        const { code, message } = error as NodeJS.ErrnoException
        if (timeout !== undefined && code === '08P01' && message.includes('statement_timeout')) {
          if (options.statement_timeout !== undefined) onEvent('warning', `${message} (set it for the role instead)`)
          options.statement_timeout = undefined
        } else if (code === '53300' && performance.now() < deadline) {
          // Use the connections that the server has accepted, and try again later to open more.
          if (options.max === poolSize)
            void sleep(10_000, undefined, { ref: false }).then(() => (options.max = poolSize))
          options.max = Math.max(1, pool.totalCount)
          await sleep(20)
        } else if (code === '28P01' && findPassword() === undefined) {
          throw new Error('The server requires a password, but the URL contains none.', { cause: error })
        } else throw error
      }
    }
  }

  const store = postgresStore({ query }, { table, timeoutMs, onWarning: (message) => onEvent('warning', message) })
  await store.ping().catch(async (error: unknown) => {
    if (isUnavailable(error)) return onEvent('unreachable', error)
    await pool.end()
    throw error
  })
  return { ...store, close: async () => (pool.ending ? undefined : pool.end()) }
}

type ParseUrl = (url: string) => PoolConfig & { password: string }

/** Loads `pg`, an optional peer dependency: from where plant-store is installed, or from the working directory. */
function loadDriver(): Pick<typeof import('pg'), 'Pool'> & { parseUrl: ParseUrl } {
  const require = createRequire(import.meta.url)
  try {
    const path = require.resolve('pg', { paths: [import.meta.dirname, process.cwd()] })
    const { parse } = createRequire(path)('pg-connection-string') as { parse: ParseUrl }
    return { Pool: (require(path) as typeof import('pg')).Pool, parseUrl: parse }
  } catch (cause) {
    const [reason] = (cause as Error).message.split('\n')
    if (reason === "Cannot find module 'pg'") throw new Error('the pg driver is not installed (npm install pg)')
    throw new Error(`cannot load the pg driver: ${reason}`, { cause })
  }
}
