import { setTimeout as sleep } from 'node:timers/promises'
import { withDeadline } from '../../maybe-promise.ts'
import { checkWholeNumber, isObject, MAX_TIMER_MS, refuseUnknown, wrong } from '../../option-checks.ts'
import type { NewPlant } from '../../plants/plant.ts'
import { StoreUnavailableError } from '../../plants/store.ts'
import type { PageRequest, Store } from '../../plants/store.ts'
import { Batcher } from '../batcher.ts'
import type { Run } from '../batcher.ts'
import { isConflict, isNameTaken, isRefusedValue, isTransient } from './failure.ts'
import { createPageReader } from './list.ts'
import { CREATE_MANY, CREATE_ONE, DELETE_MANY, DELETE_ONE, PING, schema } from './statements.ts'
import type { Statement } from './statements.ts'
import { SharedReads } from '../shared-reads.ts'

export { schema }

/** What is called of a pool of connections: a `Pool` of `pg`, or what behaves like one. */
export interface Queryable {
  query(query: Query): Promise<QueryResult>
  /** How the pool tells of a connection that broke while it was idle. */
  on?(event: 'error', listener: (error: Error) => void): unknown
  listenerCount?(event: 'error'): number
}

/** What a pool is asked. */
export interface Query {
  /** The name under which a connection keeps the statement prepared; without one it is not kept. */
  name?: string
  text: string
  /** Strings, numbers and null, and arrays of these. */
  values: unknown[]
  rowMode: 'array'
  /** How values are read, whatever the host has set: ids are exact as the text that the server sends. */
  types: { getTypeParser(): (text: string) => string }
  /** After how many milliseconds without an answer `pg` gives the connection up. */
  query_timeout: number
}

/** What a pool answers. */
export interface QueryResult {
  rows: readonly (readonly unknown[])[]
  /** How many rows the statement has changed. */
  readonly rowCount: number | null
}

/** Options of {@link postgresStore}. */
export interface PostgresStoreOptions {
  /** Whether connections keep statements prepared; default true. Set to false behind a transaction pooler. */
  readonly preparedStatements?: boolean
  /** The most plants that are created, or deleted, by one statement; default 128. */
  readonly maxBatch?: number
  /**
   * Statements that create plants, and statements that delete plants, which may be under way at once; default 1. More
   * make smaller groups, which cost more a plant, and wait less for a server that is far or slow to commit.
   */
  readonly maxInFlight?: number
  /**
   * How long a statement may take, the wait for a connection included, in milliseconds; default 5,000. A create or
   * delete may wait as long before it is sent, so twice this should not be more than the service's `storeTimeoutMs`.
   */
  readonly timeoutMs?: number
}

/** A store of plants in Postgres. */
export interface PostgresStore extends Store {
  create(owner: string, plant: NewPlant): Promise<boolean>
  list(owner: string, request: PageRequest): Promise<readonly NewPlant[]>
  delete(owner: string, id: bigint): Promise<boolean>
  ping(): Promise<void>
  /** Makes the table of {@link schema} if there is none. Any number of processes may do so at once. */
  migrate(): Promise<void>
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

const asText = (text: string): string => text

/** For `pg`, which reads an int8 as a double if its host has chosen so. */
const AS_TEXT: Query['types'] = { getTypeParser: () => asText }

/** How often a statement is sent that another one was preferred to. */
const MAX_ATTEMPTS = 5

/**
 * Keeps plants in Postgres, shared by any number of service processes. Plants that are created, or deleted, while
 * statements are under way go together in the next one, and requests for the same page share a statement.
 *
 * The pool is the host's, who ends it. Its errors of idle connections are ignored if nobody listens to them, as
 * the pool replaces such a connection; without a listener they would end the process.
 * @param pool of a database whose encoding is UTF8; should have a `connectionTimeoutMillis`, so that it gives up a
 *   server that never answers
 * @throws TypeError if the pool or an option is none
 */
export function postgresStore(pool: Queryable, options: PostgresStoreOptions = {}): PostgresStore {
  const { preparedStatements, maxBatch, maxInFlight, timeoutMs } = resolveOptions(options)
  checkPool(pool)
  if (pool.listenerCount?.('error') === 0) pool.on?.('error', () => undefined)

  async function send(statement: Statement, values: unknown[]): Promise<QueryResult> {
    const { name, text } = statement
    const query: Query = { text, values, rowMode: 'array', types: AS_TEXT, query_timeout: timeoutMs }
    if (preparedStatements && name !== undefined) query.name = name
    for (let attempt = 1; ; attempt++) {
      try {
        // A pool without a connectionTimeoutMillis may wait for a connection for ever, and would take the
        // batches with it.
        const noAnswer = (): Error => new Error(`No answer within ${timeoutMs} ms.`)
        return detach(await withDeadline(pool.query(query), timeoutMs, noAnswer), values)
      } catch (error) {
        if (!isTransient(error)) throw error
        if (!isConflict(error) || attempt === MAX_ATTEMPTS) {
          throw new StoreUnavailableError('The database cannot be used now.', { cause: error })
        }
        await sleep(Math.random() * 2 ** attempt)
      }
    }
  }

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
  const lists = new SharedReads<readonly NewPlant[]>()

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

    async ping() {
      await send(PING, [])
    },

    async migrate() {
      await send({ text: schema }, []).catch((error: unknown) => {
        if (!isNameTaken(error)) throw error
        // By now the table of the other process is there. If something else has its name, this says so.
        return send({ text: schema }, [])
      })
    },
  }
}

/**
 * Takes from `pg` what it would keep until the next full garbage collection: what holds a query with a `query_timeout`
 * is a function that V8 allocates among the old objects.
 */
function detach(result: QueryResult, values: unknown[]): Pick<QueryResult, 'rows' | 'rowCount'> {
  const { rows, rowCount } = result
  result.rows = []
  values.length = 0
  return { rows, rowCount }
}

function resolveOptions(options: PostgresStoreOptions): Required<PostgresStoreOptions> {
  if (!isObject(options)) throw wrong('options', 'an object', options)
  const { preparedStatements = true, maxBatch, maxInFlight, timeoutMs, ...unknown } = options
  refuseUnknown(unknown)
  if (typeof preparedStatements !== 'boolean') {
    throw wrong('options.preparedStatements', 'true or false', preparedStatements)
  }
  return {
    preparedStatements,
    maxBatch: checkWholeNumber('maxBatch', maxBatch, 1) ?? 128,
    maxInFlight: checkWholeNumber('maxInFlight', maxInFlight, 1) ?? 1,
    timeoutMs: checkWholeNumber('timeoutMs', timeoutMs, 1, MAX_TIMER_MS) ?? 5000,
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
