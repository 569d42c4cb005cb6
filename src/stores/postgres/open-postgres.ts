import { createRequire } from 'node:module'
import { setDefaultAutoSelectFamilyAttemptTimeout } from 'node:net'
import { join } from 'node:path'
import { performance } from 'node:perf_hooks'
import process from 'node:process'
import { setTimeout } from 'node:timers'
import { setTimeout as sleep } from 'node:timers/promises'
import type { PoolClient, PoolConfig } from 'pg'
import { isUnavailable, StoreUnavailableError, type Store } from '../../plants/store.ts'
import { postgresStore } from './postgres-store.ts'

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
 * Opens the store of the standalone server. If the database is unavailable, the store retries in the background, and its
 * methods throw StoreUnavailableError in the meantime.
 * @throws Error if retrying can't help
 */
export async function openPostgres(url: string, settings: PostgresSettings): Promise<Store> {
  const { migrate, storeTimeoutMs, postgresTable: table, postgresPoolSize, currentUrl, onEvent } = settings
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
    max: postgresPoolSize,
    // Without a password, let the server reject a wrong one: `pg` leaves the connection open if this function throws.
    password: () => findPassword() ?? 'missing',
    verify: rejectReadOnlyServer,
  })
  pool.on('error', (error) => onEvent('disconnected', error))
  const onWarning = (message: string): void => onEvent('warning', message)
  const store = postgresStore({ connect, on: pool.on.bind(pool) }, { table, timeoutMs, onWarning })

  function findPassword(): string | undefined {
    const { password } = parseUrl(currentUrl())
    return password === '' ? process.env['PGPASSWORD'] : password
  }

  /** Checks out a connection. Adapts the pool to PgBouncer, and to a server that accepts fewer connections. */
  async function connect(): Promise<PoolClient> {
    const { options } = pool
    for (const deadline = performance.now() + timeoutMs; ;) {
      const { statement_timeout: timeout } = options
      try {
        return await pool.connect()
      } catch (error) {
        const { code, message } = error as NodeJS.ErrnoException
        if (timeout !== undefined && code === '08P01' && message.includes('statement_timeout')) {
          if (options.statement_timeout !== undefined)
            onWarning(`${message} (set it for the role, see docs/postgres.md)`)
          options.statement_timeout = undefined
        } else if (code === '53300' && performance.now() < deadline) {
          // Use the connections that the server has accepted, and try again later to open more.
          if (options.max === postgresPoolSize) setTimeout(() => (options.max = postgresPoolSize), 10_000).unref()
          options.max = Math.max(1, pool.totalCount)
          await sleep(20)
        } else if (code === '28P01' && findPassword() === undefined) {
          throw new Error('The server requires a password, but the URL contains none.', { cause: error })
        } else throw error
      }
    }
  }

  /** Returns the error that prevents the store from working, if any. */
  async function initialize(): Promise<Error | undefined> {
    try {
      if (migrate) await store.migrate()
      await store.ping()
      return undefined
    } catch (error) {
      return error as Error
    }
  }

  let problem = await initialize()
  if (problem !== undefined && !isUnavailable(problem)) {
    await pool.end()
    throw problem
  }
  void retry()
  async function retry(): Promise<void> {
    for (let delayMs = 500; problem !== undefined && !pool.ending; delayMs = Math.min(2 * delayMs, 10_000)) {
      onEvent('unreachable', problem)
      await sleep(delayMs, undefined, { ref: false })
      problem = await initialize()
    }
  }

  function ready(): typeof store {
    if (problem === undefined) return store
    throw new StoreUnavailableError('The database has not been available since startup.', { cause: problem })
  }
  return {
    create: async (owner, plant) => ready().create(owner, plant),
    list: async (owner, request) => ready().list(owner, request),
    delete: async (owner, id) => ready().delete(owner, id),
    ping: async () => ready().ping(),
    close: async () => (pool.ending ? undefined : pool.end()),
  }
}

/** A standby would return outdated lists. */
function rejectReadOnlyServer(client: PoolClient, done: (error?: Error) => void): void {
  client
    .query({ text: 'SHOW transaction_read_only', rowMode: 'array' })
    .then(({ rows }) => done(rows.flat()[0] === 'on' ? new Error('The server is read-only.') : undefined), done)
}

/** Returns an empty password if the URL contains none. */
type ParseUrl = (url: string) => PoolConfig & { password: string }

/** Loads `pg`, an optional peer dependency: from where plant-store is installed, or from the working directory. */
function loadDriver(): Pick<typeof import('pg'), 'Pool'> & { parseUrl: ParseUrl } {
  for (const base of [import.meta.url, join(process.cwd(), 'package.json')]) {
    const require = createRequire(base)
    try {
      const { Pool } = require('pg') as typeof import('pg')
      const { parse } = createRequire(require.resolve('pg'))('pg-connection-string') as { parse: ParseUrl }
      return { Pool, parseUrl: parse }
    } catch (error) {
      const [reason] = (error as Error).message.split('\n')
      if (reason !== "Cannot find module 'pg'")
        throw new Error(`cannot load the pg driver: ${reason}`, { cause: error })
    }
  }
  throw new Error('the pg driver is not installed (npm install pg)')
}
