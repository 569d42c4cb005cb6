/**
 * The store that keeps plants in a Postgres database.
 * @module plant-store/postgres
 */

import { checkWholeNumber, isObject, MAX_TIMER_MS, refuseUnknown, wrong } from '../../option-checks.ts'
import type { NewPlant } from '../../plants/plant.ts'
import { StoreUnavailableError, type Page, type PageRequest, type Store } from '../../plants/store.ts'
import { Batcher, type Run } from './batcher.ts'
import { SharedReads } from './shared-reads.ts'
import { isRefusedValue } from './failure.ts'
import { createPageReader, type Send } from './list.ts'
import type { Queryable } from './pool.ts'
import { Sender } from './sender.ts'
import { CREATE_MANY, CREATE_ONE, DELETE_MANY, DELETE_ONE, FIND_TABLE, schema } from './statements.ts'
import type { Statement } from './statements.ts'

export { schema }

export type { Connection, Query, Queryable, QueryResult } from './pool.ts'

/** Options of {@link postgresStore}. */
export interface PostgresStoreOptions {
  /**
   * Whether connections keep statements prepared. If a pooler turns out not to keep them, the store stops preparing them.
   * @default true
   */
  readonly preparedStatements?: boolean | undefined
  /**
   * The most plants that one statement creates, or deletes, at least 1.
   * @default 128
   */
  readonly maxBatch?: number | undefined
  /**
   * Statements that create plants, and statements that delete plants, which may be under way at once, at least 1. More make
   * smaller groups, which cost more a plant, and wait less for a server that is far or slow to commit.
   * @default 1
   */
  readonly maxInFlight?: number | undefined
  /**
   * How long a statement may take, the wait for a connection included, in milliseconds, at least 1. A create or
   * delete may wait as long before it is sent, and cancelling a statement takes at most a quarter of it, so this should
   * be at most 0.4 times the `storeTimeoutMs` of the service.
   * @default 4_000
   */
  readonly timeoutMs?: number | undefined
  /** Gets what an operator should know, in one line, without anything of the plants. */
  readonly onWarning?: ((message: string) => void) | undefined
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
  /** Gives back to the pool what it lent, so that it can end also while the server says nothing. */
  close(): void
}

/** A create or delete that waits for its statement. */
interface Operation {
  readonly owner: string
  readonly id: bigint
  /** From when on it is not sent any more, by `performance.now()`. */
  readonly expiry: number
}

interface Create extends Operation {
  readonly plant: NewPlant
}

/** The values that a statement takes for one plant. */
type Values = (string | null)[]

/**
 * Keeps plants in Postgres, shared by any number of service processes. Plants that are created, or deleted, while
 * statements are under way go together in the next one, and requests for the same page share a statement.
 *
 * The pool is the host's, who ends it. Its errors of idle connections are ignored if nobody listens to them, as
 * the pool replaces such a connection; without a listener they would end the process.
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
export function postgresStore(pool: Queryable, options: PostgresStoreOptions = {}): PostgresStore {
  const { maxBatch, maxInFlight, timeoutMs, ...others } = resolveOptions(options)
  checkPool(pool)
  if (pool.listenerCount?.('error') === 0) pool.on?.('error', () => undefined)
  const sender = new Sender(pool, { timeoutMs, ...others })
  const send: Send = (statement, values) => sender.send(statement, values)

  /** Collects operations while statements are under way, and has one statement carry out each group. */
  function batch<T extends Operation>(
    one: Statement,
    many: Statement,
    valuesOf: (operation: T) => Values,
  ): Batcher<T, boolean> {
    async function carryOut(group: readonly T[]): Promise<readonly boolean[]> {
      if (group.length === 1) return [(await send(one, valuesOf(group[0]!))).rowCount === 1]
      const { rows, rowCount } = await send(many, transpose(group.map(valuesOf)))
      if (rowCount === group.length) return group.map(() => true)
      const changed = new Set(rows.map((row) => row.join(' ')))
      // The first operation on a plant is the one that did it; the others came too late.
      return group.map(({ owner, id }) => changed.delete(`${owner} ${id}`))
    }
    return new Batcher(dividing(carryOut), { maxRuns: maxInFlight, maxOperations: maxBatch })
  }

  const creates = batch<Create>(CREATE_ONE, CREATE_MANY, ({ owner, id, plant }) => [
    owner,
    String(id),
    plant.name,
    plant.tag ?? null,
  ])
  const deletes = batch(DELETE_ONE, DELETE_MANY, ({ owner, id }) => [owner, String(id)])
  const readPage = createPageReader(send)
  const lists = new SharedReads<Page>()

  return {
    create(owner, plant) {
      return creates.add({ owner, id: plant.id, plant, expiry: performance.now() + timeoutMs })
    },

    list(owner, request) {
      return lists.read(`${request.limit} ${request.maxBytes} ${request.after} ${owner}`, () =>
        readPage(owner, request),
      )
    },

    delete(owner, id) {
      return deletes.add({ owner, id, expiry: performance.now() + timeoutMs })
    },

    ping() {
      return sender.ping()
    },

    async migrate() {
      // Only who may create tables may ask for one that is there already.
      const { rows } = await send(FIND_TABLE, [])
      if (rows[0]![0] !== null) return
      // `IF NOT EXISTS` does not see what another process makes at the same time. The second time it does, and another
      // error comes again.
      await send({ text: schema }, []).catch(() => send({ text: schema }, []))
    },

    close() {
      sender.close()
    },
  }
}

/** The options with every default in place. */
type Resolved = { readonly [Name in keyof PostgresStoreOptions]-?: NonNullable<PostgresStoreOptions[Name]> }

function resolveOptions(options: PostgresStoreOptions): Resolved {
  if (!isObject(options)) throw wrong('options', 'an object', options)
  const {
    preparedStatements = true,
    onWarning = () => undefined,
    maxBatch,
    maxInFlight,
    timeoutMs,
    ...unknown
  } = options
  refuseUnknown(unknown)
  if (typeof preparedStatements !== 'boolean') {
    throw wrong('options.preparedStatements', 'true or false', preparedStatements)
  }
  if (typeof onWarning !== 'function') throw wrong('options.onWarning', 'a function', onWarning)
  return {
    preparedStatements,
    onWarning,
    maxBatch: checkWholeNumber('maxBatch', maxBatch, 1) ?? 128,
    maxInFlight: checkWholeNumber('maxInFlight', maxInFlight, 1) ?? 1,
    timeoutMs: checkWholeNumber('timeoutMs', timeoutMs, 1, MAX_TIMER_MS) ?? 4000,
  }
}

/** What was given as a pool may be a URL with a password, so only its type is said. */
function checkPool(pool: Partial<Queryable> | null | undefined): void {
  if (typeof pool?.query === 'function') return
  throw new TypeError(`pool must be a pool of connections, not of type ${typeof pool}`)
}

/** The values of a group, column by column. */
function transpose(rows: readonly Values[]): Values[] {
  return rows[0]!.map((_, column) => rows.map((row) => row[column] ?? null))
}

/**
 * Carries out groups of operations. If the server refuses a value, the group is halved until nothing but the
 * operation with that value fails.
 */
function dividing<T extends Operation>(
  carryOut: (group: readonly T[]) => Promise<readonly boolean[]>,
): Run<T, boolean> {
  return async function run(group): Promise<PromiseSettledResult<boolean>[]> {
    try {
      // A server that says nothing would be caught up with for long otherwise, on behalf of clients that have gone.
      if (performance.now() > group.at(-1)!.expiry) throw new StoreUnavailableError('No statement was free in time.')
      return (await carryOut(group)).map((value) => ({ status: 'fulfilled', value }))
    } catch (reason) {
      if (group.length > 1 && isRefusedValue(reason)) {
        const half = Math.ceil(group.length / 2)
        return [...(await run(group.slice(0, half))), ...(await run(group.slice(half)))]
      }
      return group.map(() => ({ status: 'rejected', reason }))
    }
  }
}
