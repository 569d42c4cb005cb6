import { createHash } from 'node:crypto'
import { performance } from 'node:perf_hooks'
import { setImmediate } from 'node:timers/promises'
import { isUnavailable, StoreUnavailableError } from '../../plants/store.ts'
import type { TextValues } from '../rows.ts'

/** The members of a connection pool that the store uses: a `Pool` of `pg`, or any object that behaves like it. */
export interface ConnectionPool {
  /**
   * Sends a statement on a connection of the pool, which closes the connection if the statement fails.
   * @param query prepared if it has a `name`; `values` are strings, numbers, null or arrays; `query_timeout` is in ms
   */
  query(query: {
    readonly text: string
    readonly values: unknown[]
    readonly rowMode: 'array'
    readonly name?: string | undefined
    readonly query_timeout?: number
  }): Promise<{ readonly rows: unknown[][]; readonly rowCount: number | null }>
  /** Adds a listener for errors of idle connections. */
  on?(event: 'error', listener: () => void): unknown
  listenerCount?(event: 'error'): number
}

/** Returns a function that prepares a statement, unless a connection pooler turns out not to keep statements. */
export function createPrepare(
  pool: ConnectionPool,
  query_timeout: number,
  onWarning?: (message: string) => void,
): (text: string) => (values: unknown[]) => ReturnType<ConnectionPool['query']> {
  let isPreparing = true
  // The pool replaces an idle connection that breaks. Without a listener, its error would crash the process.
  if (pool.listenerCount?.('error') === 0) pool.on?.('error', () => undefined)

  return function prepare(text) {
    // The name contains a digest, so that sessions that a pooler shares never mix up two statements.
    const name = `plant-store ${createHash('sha256').update(text).digest('hex').slice(0, 16)}`

    return async function send(values) {
      const isPrepared = isPreparing
      try {
        return await pool.query({ text, values, rowMode: 'array', name: isPrepared ? name : undefined, query_timeout })
      } catch (error) {
        // In these cases, a pooler used another session, and the statement wasn't executed.
        const isUnprepared = isPrepared && /^(?:26000|42P05)$/.test((error as DatabaseError).code ?? '')
        if (!isUnprepared) throw toStoreError(error as DatabaseError, !text.startsWith('SELECT'))
        if (isPreparing) onWarning?.('The connection pooler does not keep prepared statements, so they are not used.')
        isPreparing = false
        return send(values)
      }
    }
  }
}

/** An error of the server or of a pooler has a `severity`, and as its `code` a SQLSTATE (PostgreSQL, appendix A). */
type DatabaseError = Error & Partial<Record<'code' | 'severity', string>>

/**
 * Retrying can help: the connection failed (08), the transaction was rolled back (40), the server lacks a resource (53),
 * is stopping or canceled the statement (57), had an I/O error (58) or is read-only (25006), or the table is locked (55).
 */
const TRANSIENT = /^(?:08|40|53|57|58|25006|55006|55P03)/
/** The connection was lost, the server is stopping, or it reported an I/O error, which can happen during a commit. */
const OUTCOME_UNKNOWN = /^(?:08|57P|40003|58030)/
/** The server or PgBouncer refused the connection, or Node or `pg` couldn't open it in time. */
const NOT_CONNECTED = /^(?:28|3D|53300|57P03|connect |getaddrinfo |timeout )|connection timeout$|server_login_retry/

/** Converts the error of a statement to a StoreUnavailableError if retrying can help. */
function toStoreError(error: DatabaseError, isWrite: boolean): Error {
  const { code = '', severity } = error
  // A FATAL error ends the session. Poolers send it with SQLSTATEs of any class.
  const isSessionLost = severity === undefined || severity === 'FATAL'
  if (isUnavailable(error) || error instanceof TypeError || !(isSessionLost || TRANSIENT.test(code))) return error
  const message = describe(error)
  const isSent = !NOT_CONNECTED.test(severity === undefined ? message : `${code} ${message}`)
  const isOutcomeUnknown = isWrite && isSent && (isSessionLost || OUTCOME_UNKNOWN.test(code))
  return new StoreUnavailableError(`The database is unavailable: ${message}`, { cause: error, isOutcomeUnknown })
}

/** If a host name has several addresses, Node reports an AggregateError, whose own message is empty. */
const describe = (error: Error): string =>
  error instanceof AggregateError ? (error.errors as Error[]).map(describe).join('; ') : error.message

type Row = readonly [owner: string, id: string, ...texts: TextValues]

/**
 * Creates a function that creates a plant. Calls that arrive while a statement is in flight share the next one: with 64
 * concurrent calls, that makes four times as many creates per second as a statement for each.
 */
export function batchCreates(
  insert: (rows: readonly Row[]) => Promise<boolean[]>,
  timeoutMs: number,
): (...row: Row) => Promise<boolean> {
  /** The batch that the next create joins. */
  let batch: { readonly rows: Row[]; readonly results: Promise<boolean[]> } | undefined
  /** Resolves when all batches before the next one have ended. */
  let previous: Promise<unknown> = Promise.resolve()

  function openBatch(): NonNullable<typeof batch> {
    const rows: Row[] = []
    const expiresAt = performance.now() + timeoutMs
    const results = previous.then(async () => {
      // The callers of the previous statement may go on with further creates, which then share this one.
      await setImmediate()
      if (batch?.rows === rows) batch = undefined
      if (performance.now() <= expiresAt) return insert(rows)
      throw new StoreUnavailableError('The create timed out before it was sent.')
    })
    previous = results.catch(() => undefined)
    return { rows, results }
  }

  return async (...row) => {
    // A statement with more plants would delay every other request.
    if (batch === undefined || batch.rows.length === 64) batch = openBatch()
    const { rows, results } = batch
    const index = rows.push(row) - 1
    try {
      return (await results)[index]!
    } catch (error) {
      if (rows.length === 1 || isUnavailable(error)) throw error
      // If the database rejects one plant of several, the others are still created.
      return (await insert([row]))[0]!
    }
  }
}

export const DEFAULT_TABLE = 'public.plant_store_plants'
/** Matches the names of a schema and a table, as in SQL. */
export const TABLE_NAME = /^(?:(?:[a-z_][a-z0-9_]*|"(?:[^"\0]|"")+")(?:\.(?!$)|$)){2}$/

/**
 * The migrations, oldest first, by a column that each of them adds: if the table has it, the migration has been applied.
 * Several processes can apply a migration at the same time, so its SQL must be idempotent. Processes of the previous
 * version keep running, so a new column must be nullable or have a default: `ALTER TABLE … ADD COLUMN IF NOT EXISTS`.
 */
export const MIGRATIONS: Readonly<Record<string, (table: string) => string>> = {
  owner: (table) => `CREATE TABLE IF NOT EXISTS ${table} (
  owner text COLLATE "C" NOT NULL,
  id bigint NOT NULL,
  name text NOT NULL,
  tag text,
  PRIMARY KEY (owner, id)
)`,
}

/** Applies the migrations that the table lacks. Without any, it only needs the privilege to connect. */
export async function applyMigrations(pool: ConnectionPool, table: string, migrations = MIGRATIONS): Promise<void> {
  const send = (text: string, values: unknown[]) => pool.query({ text, values, rowMode: 'array' })
  const text = 'SELECT attname FROM pg_attribute WHERE attrelid = to_regclass($1) AND NOT attisdropped'
  const columns = (await send(text, [table])).rows.flat()
  const missing = Object.entries(migrations).filter(([column]) => !columns.includes(column))
  // `IF NOT EXISTS` fails if another process is doing the same at this moment. The second attempt succeeds.
  for (const [, sql] of missing) await send(sql(table), []).catch(() => send(sql(table), []))
}
