/**
 * A store that keeps plants in a Postgres database.
 * @module plant-store/postgres
 */

import { Buffer } from 'node:buffer'
import { withDefaults, type Resolved } from '../../legacy/option-checks.ts'
import { wrapEncodedList, type EncodedPage } from '../../legacy/plants/encoded-list.ts'
import { tagOf, type NewPlant } from '../../legacy/plants/plant.ts'
import { StoreUnavailableError, type Page, type PageRequest, type Store } from '../../legacy/plants/store.ts'
import { DEFAULT_POSTGRES_BATCH, textLength } from '../../legacy/stores/batch-size.ts'
import { metricsOf } from '../store-metrics.ts'
import { createBatcher } from './batcher.ts'
import { isRowTooLarge } from './errors.ts'
import { createPageReader, shareReads } from './page-reader.ts'
import type { ConnectionPool } from './pool.ts'
import { QueryRunner } from './query-runner.ts'
import { StatementSender } from './statement-sender.ts'
import {
  CREATE_MANY,
  CREATE_ONE,
  CREATE_TABLE,
  DELETE_MANY,
  DELETE_ONE,
  TABLE_EXISTS,
  schema,
  type Statement,
} from './statements.ts'

export { schema }

export type { Connection, ConnectionPool, Query, QueryResult } from './pool.ts'

/** Options of {@link postgresStore}. */
export interface PostgresStoreOptions {
  /**
   * Whether to use prepared statements. If a connection pooler turns out not to support them, the store stops using
   * them.
   * @default true
   */
  readonly preparedStatements?: boolean | undefined
  /**
   * The maximum number of plants that one statement creates or deletes, at least 1. A batch also ends once it contains
   * about a million characters of names and tags.
   * @default 128
   */
  readonly maxBatch?: number | undefined
  /**
   * The maximum number of create statements in flight, and likewise of delete statements; at least 1. A higher number
   * makes the batches smaller. That costs more per plant, but reduces the latency if the server is far away or commits
   * slowly.
   * @default 1
   */
  readonly maxInFlight?: number | undefined
  /**
   * The timeout for the statements of a call, including the wait for a connection, in milliseconds; at least 1. Use at
   * most 0.4 times the service's `storeTimeoutMs`: a call may wait this long for the statements of other calls before
   * its own are sent, and canceling a statement takes up to a quarter of this time.
   * @default 4_000
   */
  readonly timeoutMs?: number | undefined
  /**
   * Called with a one-line warning for the operator, for example that the table is unlogged. Warnings never contain
   * plant data. Exceptions that this function throws are ignored.
   * @default a no-op
   */
  readonly onWarning?: ((message: string) => void) | undefined
}

const DEFAULT_OPTIONS: Resolved<PostgresStoreOptions> = {
  preparedStatements: true,
  maxBatch: DEFAULT_POSTGRES_BATCH,
  maxInFlight: 1,
  timeoutMs: 4000,
  onWarning: () => undefined,
}

/** A store that keeps plants in a Postgres database. */
export interface PostgresStore extends Store {
  create(owner: string, plant: NewPlant): Promise<boolean>
  list(owner: string, request: PageRequest): Promise<Page>
  delete(owner: string, id: bigint): Promise<boolean>
  /** Resolves if the store can currently create and delete plants, and rejects otherwise. */
  ping(): Promise<void>
  /**
   * Creates the table, as defined by {@link schema}, if it doesn't exist. Several processes can call this at the same
   * time.
   * @throws StoreUnavailableError if retrying can help
   * @throws Error from the database server if the table can't be created, for example because the role lacks the
   *   privilege
   */
  migrate(): Promise<void>
  /** Stops waiting for an unresponsive server, so that `pool.end()` doesn't hang. Doesn't end the pool. */
  close(): void
  /** Calls `close`, for `await using`. */
  [Symbol.asyncDispose](): Promise<void>
}

/**
 * Creates a store that keeps plants in a Postgres database. Any number of service processes can share the database.
 * Create calls that arrive while a create statement is in flight are sent together in the next statement. The same goes
 * for delete calls. Concurrent reads of the same page share a statement.
 *
 * You own the pool: end it yourself. The store adds an `error` listener to the pool, because an error on an idle
 * connection would otherwise crash the process. The pool replaces such a connection.
 * @param pool a connection pool, for a database with the encoding UTF8. Set its `connectionTimeoutMillis`, because the
 *   pool otherwise waits forever for an unresponsive server
 * @throws TypeError if the pool or an option is invalid
 *
 * @example
 * import { createServer } from 'node:http'
 * import pg from 'pg'
 * import { createPlantStore } from 'plant-store'
 * import { postgresStore } from 'plant-store/postgres'
 *
 * const connectionString = 'postgres://user:password@host/database'
 * const store = postgresStore(new pg.Pool({ connectionString, connectionTimeoutMillis: 5000 }))
 * await store.migrate()
 * const plants = createPlantStore({ store, tokens: { 'a-long-random-token': 'ada' } })
 *
 * createServer(plants).listen(3000)
 */
export function postgresStore(pool: ConnectionPool, options: PostgresStoreOptions = {}): PostgresStore {
  const resolvedOptions = withDefaults(options, DEFAULT_OPTIONS)
  // The message doesn't quote the value, which could be a URL with a password.
  if (typeof (pool as Partial<ConnectionPool> | null | undefined)?.connect !== 'function') {
    throw new TypeError(`pool must be a connection pool with a connect method, not a value of type ${typeof pool}`)
  }
  const runner = new QueryRunner(pool, resolvedOptions.timeoutMs, resolvedOptions.onWarning)
  const sender = new StatementSender((...args) => runner.send(...args), resolvedOptions)

  function createBatchedWrite(
    singleStatement: Statement,
    batchStatement: Statement,
  ): (values: (string | null)[], length?: number) => Promise<boolean> {
    return createBatcher(
      async (batch) => {
        if (batch.length === 1) {
          const [write] = batch as [(string | null)[]]
          const { rowCount } = await sender
            .send(singleStatement, write)
            .catch((error: unknown) => rethrowTooLongOwner(error, write[0]!))
          // Don't compare the row count with 1, because a foreign table may have several rows for a plant.
          return [rowCount !== 0]
        }
        const columns = batch[0]!.map((_, column) => batch.map((values) => values[column]))
        const [, , , tags] = columns
        if (tags !== undefined) columns.push(tags.map((tag) => (tag === null ? 'f' : 't')))
        const { rows } = await sender.send(batchStatement, columns)
        const changedKeys = new Set(rows.map((row) => row.join(' ')))
        // If several writes have the same key, only the first one changed the row.
        return batch.map(([owner, id]) => changedKeys.delete(`${owner} ${id}`))
      },
      { ...resolvedOptions, onBatch: (size) => metricsOf(store).onBatch(size) },
    )
  }

  const create = createBatchedWrite(CREATE_ONE, CREATE_MANY)
  const remove = createBatchedWrite(DELETE_ONE, DELETE_MANY)
  const readPage = createPageReader(sender)
  const shareRead = shareReads<EncodedPage>()

  const store: PostgresStore = {
    create(owner, plant) {
      const { id, name } = plant
      return create([owner, String(id), name, tagOf(plant) ?? null], textLength(plant))
    },
    list: wrapEncodedList((owner, request) => {
      const key = `${request.limit} ${request.maxBytes} ${request.after} ${owner}`
      return shareRead(key, () => readPage(owner, request))
    }),
    delete: (owner, id) => remove([owner, String(id)]),
    ping: () => sender.ping(),
    async migrate() {
      // A role that lacks the CREATE privilege can't run CREATE TABLE IF NOT EXISTS, even if the table exists.
      try {
        await sender.send(TABLE_EXISTS, [])
        return
      } catch (error) {
        // 42P01 means that the table doesn't exist.
        if ((error as { code?: unknown }).code !== '42P01') throw error
      }
      // `IF NOT EXISTS` fails if another process is creating the table at the same time. The second attempt succeeds.
      await sender.send(CREATE_TABLE, []).catch((error: unknown) => {
        if (error instanceof StoreUnavailableError) throw error
        return sender.send(CREATE_TABLE, [])
      })
    },
    close: () => runner.close(),
    [Symbol.asyncDispose]() {
      runner.close()
      return Promise.resolve()
    },
  }
  return store
}

/** The index of the table always accepts owners of up to this many bytes of UTF-8. */
const MAX_OWNER_BYTES = 2000

/** Rethrows an error from the server. If the owner is too long for the index, wraps the error in one that says so. */
function rethrowTooLongOwner(cause: unknown, owner: string): never {
  if (!isRowTooLarge(cause) || Buffer.byteLength(owner) <= MAX_OWNER_BYTES) throw cause
  throw new Error('The owner is too long for the index of the table; the limit is at least 2,000 bytes of UTF-8.', {
    cause,
  })
}
