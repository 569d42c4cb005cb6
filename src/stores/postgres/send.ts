import { performance } from 'node:perf_hooks'
import { setImmediate } from 'node:timers/promises'
import { isUnavailable, StoreUnavailableError } from '../../plants/store.ts'

/** The members of a connection pool that the store uses: a `Pool` of `pg`, or any object that behaves like it. */
export interface ConnectionPool {
  connect(): Promise<Connection>
  /** Adds a listener for errors of idle connections, or for connections that are checked out or returned. */
  on?(event: 'error' | 'acquire' | 'release', listener: (...parameters: never[]) => void): unknown
  listeners?(event: 'acquire'): readonly unknown[]
}

/** The members of a connection that the store uses: a `PoolClient` of `pg`, or any object that behaves like it. */
export interface Connection {
  /** @param query `values` are strings, numbers, null, and arrays of these; `query_timeout` is in milliseconds */
  query(query: {
    readonly name: string | undefined
    readonly text: string
    readonly values: unknown[]
    readonly rowMode: 'array'
    readonly query_timeout: number
  }): Promise<QueryResult>
  /** Returns the connection to the pool, which closes it if there is an error. */
  release(error?: Error): void
  on(event: 'error', listener: () => void): unknown
  off(event: 'error', listener: () => void): unknown
}

/** The result of a statement. `rowCount` is the number of rows that it changed. */
export interface QueryResult {
  readonly rows: unknown[][]
  readonly rowCount: number | null
}

export interface Statement {
  /** The name under which a session keeps the prepared statement; undefined if it isn't prepared. */
  readonly name?: string
  readonly text: string
}

export type Send = (statement: Statement, values: unknown[], isWrite?: boolean) => Promise<QueryResult>

/** Creates a function that sends a statement. It stops preparing statements if a connection pooler doesn't keep them. */
export function createSend(pool: ConnectionPool, timeoutMs: number, onWarning?: (message: string) => void): Send {
  let isPreparing = true
  ignoreConnectionErrors(pool)

  return async function send({ name, text }, values, isWrite = false) {
    const connection = await pool.connect().catch((error: unknown) => {
      throw unavailable(error)
    })
    const preparedName = isPreparing ? name : undefined
    try {
      const query = { name: preparedName, text, values, rowMode: 'array', query_timeout: timeoutMs } as const
      const result = await connection.query(query)
      connection.release()
      return result
    } catch (error) {
      // Closes the connection: its statement could still be running, or its server could be read-only.
      connection.release(error as Error)
      // In these cases, a pooler used another session, and the statement wasn't executed.
      const isUnprepared = preparedName !== undefined && /^(?:26000|42P05)$/.test((error as DatabaseError).code ?? '')
      if (!isUnprepared) throw toStoreError(error, isWrite)
      if (isPreparing) onWarning?.('The connection pooler does not keep prepared statements, so they are not used.')
      isPreparing = false
      return send({ text }, values, isWrite)
    }
  }
}

/**
 * Ignores the errors of idle connections and of connections in use, which would crash the process. The pool replaces the
 * connection. Errors can follow the data that made a connection idle, so it's too late to listen when `connect` resolves.
 */
function ignoreConnectionErrors(pool: ConnectionPool): void {
  // Another store already listens to the pool.
  if (pool.listeners?.('acquire').includes(onAcquire) === true) return
  pool.on?.('error', ignoreError)
  pool.on?.('acquire', onAcquire)
  pool.on?.('release', onRelease)
}

const ignoreError = (): void => undefined
const onAcquire = (connection: Connection): unknown => connection.on('error', ignoreError)
const onRelease = (_: unknown, connection: Connection): unknown => connection.off('error', ignoreError)

// These patterns match SQLSTATEs or their classes (postgresql.org/docs/current/errcodes-appendix.html).

/**
 * Retrying can help: the connection failed (08), the transaction was rolled back (40), the server ran out of a resource
 * (53), canceled the statement, or is stopping or starting (57), the operating system reported an error (58), the server
 * is read-only (25006), or another session has locked the table (55).
 */
const TRANSIENT = /^(?:08|40|53|57|58|25006|55006|55P03)/
/** The connection was lost, the server is stopping, or it reported an I/O error, which can happen during a commit. */
const OUTCOME_UNKNOWN = /^(?:08|57P(?!03)|40003|58030)/

interface DatabaseError extends Error {
  /** The SQLSTATE if the server or a pooler sent the error, with a `severity`; otherwise a code of Node. */
  readonly code?: string | undefined
  readonly severity?: string | undefined
}

/** Converts the error of a statement to a StoreUnavailableError if retrying can help. */
function toStoreError(error: unknown, isWrite: boolean): unknown {
  const { code = '', severity } = error as DatabaseError
  // A FATAL error ends the session. Poolers send it with SQLSTATEs of any class.
  const isSessionLost = severity === undefined || severity === 'FATAL'
  if (error instanceof TypeError || !(isSessionLost || TRANSIENT.test(code))) return error
  return unavailable(error, isWrite && (isSessionLost || OUTCOME_UNKNOWN.test(code)))
}

const unavailable = (cause: unknown, isOutcomeUnknown = false): StoreUnavailableError =>
  new StoreUnavailableError(`The database is unavailable: ${describe(cause)}`, { cause, isOutcomeUnknown })

/** If a host name has several addresses, Node reports an AggregateError, whose own message is empty. */
const describe = (error: unknown): string =>
  error instanceof AggregateError ? error.errors.map(describe).join('; ') : (error as Error).message

/** The owner, id, name and tag of a plant. */
export type Row = readonly [owner: string, id: string, name: string, tag: string | null]

interface QueuedCreate {
  readonly row: Row
  readonly expiresAt: number
  readonly resolve: (isCreated: boolean | Promise<boolean>) => void
  readonly reject: (reason: unknown) => void
}

const MAX_BATCH = 128
/** In characters. A longer statement would delay every other request. */
const MAX_BATCH_LENGTH = 2 ** 20

/**
 * Creates a function that creates a plant. Calls that arrive while a statement is in flight share the next one: with 64
 * concurrent calls, that makes four times as many creates per second as a statement for each.
 */
export function createBatcher(
  insert: (rows: readonly Row[]) => Promise<boolean[]>,
  timeoutMs: number,
): (...row: Row) => Promise<boolean> {
  const queue: QueuedCreate[] = []
  let isSending = false

  async function sendQueue(): Promise<void> {
    isSending = true
    for (let batch; (batch = takeBatch()).length > 0;) {
      try {
        const results = await insert(batch.map(({ row }) => row))
        batch.forEach(({ resolve }, index) => resolve(results[index]!))
      } catch (error) {
        // If the database rejects one plant of several, the others are still created.
        const isRetried = batch.length > 1 && !isUnavailable(error)
        for (const { row, resolve, reject } of batch) {
          if (isRetried) resolve(insert([row]).then(([isCreated]) => isCreated!))
          else reject(error)
        }
      }
      // Requests that have arrived in the meantime, and those of callers that continue, share the next statement.
      await setImmediate()
    }
    isSending = false
  }

  function takeBatch(): QueuedCreate[] {
    const now = performance.now()
    let length = 0
    let size = 0
    for (; size < Math.min(queue.length, MAX_BATCH) && length < MAX_BATCH_LENGTH; size++) {
      const [, , name, tag] = queue[size]!.row
      length += name.length + (tag?.length ?? 0)
    }
    return queue.splice(0, size).filter(({ expiresAt, reject }) => {
      if (now > expiresAt) reject(new StoreUnavailableError('The create timed out before it was sent.'))
      return now <= expiresAt
    })
  }

  return (...row) =>
    new Promise((resolve, reject) => {
      queue.push({ row, expiresAt: performance.now() + timeoutMs, resolve, reject })
      if (!isSending) void sendQueue()
    })
}
