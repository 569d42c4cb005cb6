/**
 * The store that keeps plants in a Postgres database.
 * @module plant-store/postgres
 */

import { Buffer } from 'node:buffer'
import { withDefaults, type Resolved } from '../../option-checks.ts'
import { wrapEncodedList, type EncodedPage } from '../../plants/encoded-list.ts'
import { tagOf, type NewPlant } from '../../plants/plant.ts'
import { StoreUnavailableError, type Page, type PageRequest, type Store } from '../../plants/store.ts'
import { DEFAULT_POSTGRES_BATCH, textLength } from '../batch-size.ts'
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
  /** Whether connections keep statements prepared, unless a pooler turns out not to keep them. @default true */
  readonly preparedStatements?: boolean | undefined
  /** The most plants that one statement creates, or a megabyte or so of them, or deletes, at least 1. @default 128 */
  readonly maxBatch?: number | undefined
  /**
   * The most create statements, and delete statements, in flight, at least 1. More of them make smaller groups, which
   * cost more for each plant, but wait less for a server that is far away or slow to commit.
   * @default 1
   */
  readonly maxInFlight?: number | undefined
  /**
   * How long the statements of a call may take, the wait for a connection included, in milliseconds, at least 1. Set at
   * most 0.4 times the `storeTimeoutMs` of the service: a call may wait as long for those of others, and cancelling a
   * statement takes up to a quarter of that.
   * @default 4_000
   */
  readonly timeoutMs?: number | undefined
  /** Gets lines for an operator, with nothing of the plants. Its own errors are ignored. @default nobody gets them */
  readonly onWarning?: ((message: string) => void) | undefined
}

const DEFAULT_OPTIONS: Resolved<PostgresStoreOptions> = {
  preparedStatements: true,
  maxBatch: DEFAULT_POSTGRES_BATCH,
  maxInFlight: 1,
  timeoutMs: 4000,
  onWarning: () => undefined,
}

/** A store of plants in Postgres. */
export interface PostgresStore extends Store {
  create(owner: string, plant: NewPlant): Promise<boolean>
  list(owner: string, request: PageRequest): Promise<Page>
  delete(owner: string, id: bigint): Promise<boolean>
  ping(): Promise<void>
  /**
   * Makes the table of {@link schema} if there is none. Any number of processes may do so at once.
   * @throws StoreUnavailableError if trying again may help
   * @throws Error of the server if the table cannot be made, for example without the right to
   */
  migrate(): Promise<void>
  /** Gives back what the pool lent, so that it can end even if the server says nothing. */
  close(): void
  /** Calls `close` at the end of an `await using`. */
  [Symbol.asyncDispose](): Promise<void>
}

/**
 * Keeps plants in Postgres, shared by any number of service processes. Creates that arrive while a statement is in
 * flight go together in the next one, and so do deletes. Requests for the same page share a statement.
 *
 * The host ends the pool. The store listens to the pool's errors of idle connections, which would else end the process;
 * the pool replaces such a connection.
 * @param pool of a database whose encoding is UTF8; should have a `connectionTimeoutMillis`, so that it gives up a
 *   server that never answers
 * @throws TypeError if the pool or an option is wrong
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
  // Quotes nothing: what was given may be a URL with a password.
  if (typeof (pool as Partial<ConnectionPool> | null | undefined)?.connect !== 'function') {
    throw new TypeError(`pool must be a pool of connections, not of type ${typeof pool}`)
  }
  const runner = new QueryRunner(pool, resolvedOptions.timeoutMs, resolvedOptions.onWarning)
  const sender = new StatementSender((...args) => runner.send(...args), resolvedOptions)

  function createBatchedWrite(
    singleStatement: Statement,
    batchStatement: Statement,
  ): (values: (string | null)[], length?: number) => Promise<boolean> {
    return createBatcher(
      async (batch) => {
        // A foreign table may have several rows for a plant.
        if (batch.length === 1) {
          const [write] = batch as [(string | null)[]]
          const { rowCount } = await sender
            .send(singleStatement, write)
            .catch((error: unknown) => rethrowTooLongOwner(error, write[0]!))
          return [rowCount !== 0]
        }
        const columns = batch[0]!.map((_, column) => batch.map((values) => values[column]))
        const [, , , tags] = columns
        if (tags !== undefined) columns.push(tags.map((tag) => (tag === null ? 'f' : 't')))
        const { rows } = await sender.send(batchStatement, columns)
        const changedKeys = new Set(rows.map((row) => row.join(' ')))
        // The first write of a plant is the one that changed it; the others came too late.
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
      // A role that may not create tables may not ask for one that is there already, either.
      try {
        await sender.send(TABLE_EXISTS, [])
        return
      } catch (error) {
        // The SQLSTATE of a missing table.
        if ((error as { code?: unknown }).code !== '42P01') throw error
      }
      // `IF NOT EXISTS` does not see a table that another process is making. The second time it does.
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

/** Owners of this many bytes of UTF-8 always fit the index of the table. */
const MAX_OWNER_BYTES = 2000

/** @throws the error of the server, or one that explains it if the owner is too long for the index of the table */
function rethrowTooLongOwner(cause: unknown, owner: string): never {
  if (!isRowTooLarge(cause) || Buffer.byteLength(owner) <= MAX_OWNER_BYTES) throw cause
  throw new Error('The owner is too long for the table: owners of up to 2,000 bytes of UTF-8 are safe.', { cause })
}
