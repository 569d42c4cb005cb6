import { listEncodedPlants, wrapEncodedList } from '../../legacy/plants/encoded-list.ts'
import { StoreUnavailableError, type Store, type StoreMethod } from '../../legacy/plants/store.ts'
import { setTimeout } from '../../legacy/timers.ts'
import { metricsOf } from '../store-metrics.ts'
import { createClientClass, loadDriver } from './driver.ts'
import { UnsuitableDatabaseError } from './errors.ts'
import { postgresStore, type PostgresStore } from './postgres-store.ts'
import { parsePostgresUrl } from './postgres-url.ts'

/** The settings of the standalone server that concern its store. */
export interface StoreSettings {
  readonly postgresPoolSize: number
  readonly postgresBatch: number
  readonly migrate: boolean
  readonly storeTimeoutMs: number
  /** Returns the URL for new connections, including the password. @default the URL that was opened */
  readonly currentUrl?: () => string
  readonly onEvent: (event: 'disconnected' | 'unreachable' | 'warning', reason: unknown) => void
}

/**
 * Opens the store of the standalone server. If the database is unavailable, the store retries in the background, and
 * its methods throw StoreUnavailableError in the meantime.
 * @throws Error if retrying can't help
 */
export async function openPostgres(url: string, settings: StoreSettings): Promise<Store> {
  const { postgresPoolSize, postgresBatch, migrate, storeTimeoutMs, onEvent, currentUrl = () => url } = settings
  const { connectTimeoutMs, readTlsOptions: tlsOptions, keepAlive, keepAliveInitialDelayMillis } = parsePostgresUrl(url)
  const { Client, Pool } = loadDriver()
  const { StoreClient, abortConnecting } = createClientClass(Client, () => parsePostgresUrl(currentUrl()))
  // Fail at startup if the driver is too old, or if a file that the URL names doesn't exist.
  new StoreClient()
  tlsOptions()
  const pool = new Pool({
    Client: StoreClient,
    max: postgresPoolSize,
    fallback_application_name: 'plant-store',
    // A connection attempt occupies a slot of the pool. With TLS and SCRAM, it takes up to seven round trips.
    connectionTimeoutMillis: connectTimeoutMs ?? Math.ceil(storeTimeoutMs / 2),
    // Keep idle connections: reconnecting to a distant server takes so long that requests and health checks would fail.
    // `maxLifetimeSeconds` still replaces them.
    idleTimeoutMillis: 0,
    keepAlive,
    keepAliveInitialDelayMillis,
    // Add jitter, so that processes don't all reconnect at the same time.
    maxLifetimeSeconds: 300 * (0.8 + 0.2 * Math.random()),
  })
  pool.on('error', (error) => onEvent('disconnected', error))
  const store = postgresStore(pool, {
    maxBatch: postgresBatch,
    // A batch size of 1 suggests that the table is distributed across several servers. A statement for one server
    // shouldn't wait for a statement for another.
    maxInFlight: postgresBatch === 1 ? postgresPoolSize : 1,
    // The rest of `storeTimeoutMs` is for waiting in the queue, and for canceling a statement.
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
  // There's no need to end the pool, because its only connection has been closed.
  if (cause instanceof UnsuitableDatabaseError) throw cause
  // 42P01 means that the table doesn't exist.
  if (!migrate && code === '42P01') {
    await pool.end()
    throw new Error('the table plant_store_plants does not exist and migrations are disabled')
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
    throw new StoreUnavailableError('The database has not been available since startup.', { cause: initError })
  }
  // With this type, adding a method to Store without adding it here is a compile error.
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
    [
      'plant_store_postgres_used_connections',
      'Connections that are in use or being established.',
      () => pool.totalCount - pool.idleCount,
    ],
    ['plant_store_postgres_idle_connections', 'Idle connections.', () => pool.idleCount],
    [
      'plant_store_postgres_waiting_statements',
      'Statements that are waiting for a connection.',
      () => pool.waitingCount,
    ],
  ]
  return openedStore
}
