import { listEncodedPlants, wrapEncodedList } from '../../plants/encoded-list.ts'
import { StoreUnavailableError, type Store, type StoreMethod } from '../../plants/store.ts'
import { setTimeout } from '../../timers.ts'
import { metricsOf } from '../store-metrics.ts'
import { createClientClass, loadDriver } from './driver.ts'
import { UnsuitableDatabaseError } from './errors.ts'
import { postgresStore, type PostgresStore } from './postgres-store.ts'
import { parsePostgresUrl } from './postgres-url.ts'

export interface StoreSettings {
  readonly postgresPoolSize: number
  readonly postgresBatch: number
  readonly migrate: boolean
  readonly storeTimeoutMs: number
  /** Gives the URL whose password new connections use; by default the one that was opened. */
  readonly currentUrl?: () => string
  readonly onEvent: (event: 'disconnected' | 'unreachable' | 'warning', reason: unknown) => void
}

/** Opens the store of a program; it is unavailable until the database serves. @throws Error if waiting does not help */
export async function openPostgres(url: string, settings: StoreSettings): Promise<Store> {
  const { postgresPoolSize, postgresBatch, migrate, storeTimeoutMs, onEvent, currentUrl = () => url } = settings
  const { connectTimeoutMs, readTlsOptions: tlsOptions, keepAlive, keepAliveInitialDelayMillis } = parsePostgresUrl(url)
  const { Client, Pool } = loadDriver()
  const { StoreClient, abortConnecting } = createClientClass(Client, () => parsePostgresUrl(currentUrl()))
  // Checks the driver, and reads the files that the URL names, which must exist from the start.
  new StoreClient()
  tlsOptions()
  const pool = new Pool({
    Client: StoreClient,
    max: postgresPoolSize,
    fallback_application_name: 'plant-store',
    // A connection that is being made holds a place in the pool. With TLS and SCRAM it takes seven round trips.
    connectionTimeoutMillis: connectTimeoutMs ?? Math.ceil(storeTimeoutMs / 2),
    // A far server is reached again so slowly that requests and health checks would fail. See `maxLifetimeSeconds`.
    idleTimeoutMillis: 0,
    keepAlive,
    keepAliveInitialDelayMillis,
    // Spread out, so that processes do not reconnect together.
    maxLifetimeSeconds: 300 * (0.8 + 0.2 * Math.random()),
  })
  pool.on('error', (error) => onEvent('disconnected', error))
  const store = postgresStore(pool, {
    maxBatch: postgresBatch,
    // A statement for one plant goes to one server of a distributed table, and must not wait for those to others.
    maxInFlight: postgresBatch === 1 ? postgresPoolSize : 1,
    // The rest of the time is for waiting for a statement, and for cancelling one.
    timeoutMs: Math.ceil(0.4 * storeTimeoutMs),
    onWarning: (message) => onEvent('warning', message),
  })

  async function tryInitialize(): Promise<unknown> {
    try {
      if (migrate) await store.migrate()
      await store.ping()
      return undefined
    } catch (error) {
      return error
    }
  }

  let initError = await tryInitialize()
  const { cause, code } = (initError ?? {}) as NodeJS.ErrnoException
  // The connection that has shown it is closed already.
  if (cause instanceof UnsuitableDatabaseError) throw cause
  // The SQLSTATE of a missing table.
  if (!migrate && code === '42P01') {
    await pool.end()
    throw new Error('it has no table plant_store_plants, and none is to be made')
  }
  void retryInitialize()

  async function retryInitialize(): Promise<void> {
    for (let delayMs = 500; initError !== undefined && !pool.ending; delayMs = Math.min(2 * delayMs, 10_000)) {
      onEvent('unreachable', initError)
      await new Promise<void>((resolve) => setTimeout(resolve, delayMs).unref())
      initError = await tryInitialize()
    }
  }

  function requireInitialized(): typeof store {
    if (initError === undefined) return store
    throw new StoreUnavailableError('The database could not be used yet.', { cause: initError })
  }
  // So that no method of the store is forgotten here.
  const openedStore: Pick<PostgresStore, Exclude<StoreMethod, 'close'>> & Pick<Required<Store>, 'close'> = {
    create: (owner, plant) => requireInitialized().create(owner, plant),
    list: wrapEncodedList(async (owner, request) => listEncodedPlants(requireInitialized(), owner, request)),
    delete: (owner, id) => requireInitialized().delete(owner, id),
    ping: () => requireInitialized().ping(),
    async close() {
      store.close()
      const poolEnd = pool.ending ? undefined : pool.end()
      abortConnecting()
      await poolEnd
    },
  }
  metricsOf(openedStore, metricsOf(store)).gauges = [
    ['plant_store_postgres_used_connections', 'In use, or being made.', () => pool.totalCount - pool.idleCount],
    ['plant_store_postgres_idle_connections', 'Idle connections.', () => pool.idleCount],
    ['plant_store_postgres_waiting_statements', 'Statements that wait for a connection.', () => pool.waitingCount],
  ]
  return openedStore
}
