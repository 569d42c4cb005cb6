import { createRequire } from 'node:module'
import { setTimeout as sleep } from 'node:timers/promises'
import type { ClientConfig } from 'pg'
import { StoreUnavailableError, type Store } from '../../plants/store.ts'
import { addGauges } from '../gauges.ts'
import { UnsuitableDatabaseError } from './failure.ts'
import { postgresStore } from './postgres-store.ts'
import { readPostgresUrl } from './postgres-url.ts'

/** How long a connection may take to be made, in milliseconds. It holds a place in the pool meanwhile. */
const CONNECT_TIMEOUT_MS = 2000

/** How long an idle connection goes without a probe whether its server is still there, in milliseconds. */
const KEEP_ALIVE_DELAY_MS = 10_000

/** How old a connection gets, in seconds. */
const MAX_LIFETIME = 300

/** The table is not there (`undefined_table`). */
const NO_TABLE = '42P01'

/** The wait between two tries to start, in milliseconds: at first, and at most. */
const [FIRST_WAIT_MS, MAX_WAIT_MS] = [500, 10_000]

/** What a program has set for its store in Postgres. */
export interface PostgresSettings {
  /** The most connections. */
  readonly postgresPoolSize: number
  /** The most plants that one statement creates or deletes. */
  readonly postgresBatch: number
  /** Whether the table is made if there is none. */
  readonly migrate: boolean
  /** How long a call of the store may take, in milliseconds. */
  readonly storeTimeoutMs: number
  /** The URL whose password new connections have; by default the one that was opened. */
  readonly currentUrl?: () => string
  /** Told what happens to the connections. */
  readonly onEvent: (event: 'disconnected' | 'unreachable' | 'warning', reason: unknown) => void
}

/**
 * Opens the store of a program. If the database cannot serve yet, the store is unavailable until it can.
 * @throws Error if waiting does not help
 */
export async function openPostgres(url: string, settings: PostgresSettings): Promise<Store> {
  const { postgresPoolSize, postgresBatch, migrate, storeTimeoutMs, onEvent, currentUrl = () => url } = settings
  const connectionString = readPostgresUrl(url)
  const { Client, Pool } = loadDriver()
  // Reads the files that the URL names, which must be there from the start.
  new Client({ connectionString })
  const pool = new Pool({
    connectionString,
    Client: class extends Client {
      constructor(config?: ClientConfig) {
        super({ ...config, connectionString: readPostgresUrl(currentUrl()) })
      }
    },
    max: postgresPoolSize,
    fallback_application_name: 'plant-store',
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
    keepAlive: true,
    keepAliveInitialDelayMillis: KEEP_ALIVE_DELAY_MS,
    // Not those of all processes at once.
    maxLifetimeSeconds: MAX_LIFETIME * (0.8 + 0.2 * Math.random()),
  })
  pool.on('error', (error) => onEvent('disconnected', error))
  const store = postgresStore(pool, {
    maxBatch: postgresBatch,
    // A statement for one plant goes to one server of a distributed table, and must not wait for those on others.
    maxInFlight: postgresBatch === 1 ? postgresPoolSize : 1,
    // What is left of the time is for what waits for a statement, and for cancelling one.
    timeoutMs: Math.ceil(0.4 * storeTimeoutMs),
    onWarning: (message) => onEvent('warning', message),
  })

  async function begin(): Promise<void> {
    if (migrate) await store.migrate()
    await store.ping()
  }

  const closing = new AbortController()
  let problem: unknown

  async function retry(): Promise<void> {
    for (let wait = FIRST_WAIT_MS; problem !== undefined; wait = Math.min(2 * wait, MAX_WAIT_MS)) {
      onEvent('unreachable', problem)
      await sleep(wait, undefined, { signal: closing.signal })
      problem = await failureOf(begin())
    }
  }

  problem = await failureOf(begin())
  // The connection that has shown it is closed already.
  if (problem instanceof UnsuitableDatabaseError) throw problem
  if (!migrate && (problem as NodeJS.ErrnoException | undefined)?.code === NO_TABLE) {
    await pool.end()
    throw new Error('it has no table plant_store_plants, and none is to be made')
  }
  // Rejects only when the store is closed.
  retry().catch(() => undefined)

  function begun(): typeof store {
    if (problem === undefined) return store
    throw new StoreUnavailableError('The database could not be used yet.', { cause: problem })
  }
  const opened: Store = {
    create: (owner, plant) => begun().create(owner, plant),
    list: (owner, request) => begun().list(owner, request),
    delete: (owner, id) => begun().delete(owner, id),
    ping: () => begun().ping(),
    async close() {
      closing.abort()
      store.close()
      if (!pool.ending) await pool.end()
    },
  }
  addGauges(opened, [
    {
      name: 'plant_store_postgres_used_connections',
      help: 'Connections to Postgres that are in use, or being made.',
      read: () => pool.totalCount - pool.idleCount,
    },
    {
      name: 'plant_store_postgres_idle_connections',
      help: 'Connections to Postgres that are idle.',
      read: () => pool.idleCount,
    },
    {
      name: 'plant_store_postgres_waiting_statements',
      help: 'Statements that wait for a connection to Postgres.',
      read: () => pool.waitingCount,
    },
  ])
  return opened
}

async function failureOf(promise: Promise<void>): Promise<unknown> {
  try {
    await promise
    return undefined
  } catch (error) {
    return error
  }
}

/** Only whoever keeps plants in Postgres needs its driver, so it is not installed with this package. */
function loadDriver(): typeof import('pg') {
  try {
    return createRequire(import.meta.url)('pg') as typeof import('pg')
  } catch {
    throw new Error('Its driver is not installed: npm install pg')
  }
}
