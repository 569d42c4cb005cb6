import { createHash } from 'node:crypto'
import { withDeadline } from '../../legacy/maybe-promise.ts'
import { StoreUnavailableError } from '../../legacy/plants/store.ts'
import { performance } from '../../legacy/timers.ts'
import { cancelStatement, isResponding } from './cancel.ts'
import { checkConnection, warningsOf } from './check-connection.ts'
import { connectWithRetry } from './connect-with-retry.ts'
import {
  addConnectionListeners,
  addPoolListeners,
  hasUnconfirmedCommit,
  resetUnconfirmedCommit,
} from './connection-listeners.ts'
import {
  breaksConnection,
  isCanceled,
  isProgrammingError,
  isServerError,
  isTimeout,
  NoResponseError,
  UnconfirmedCommitError,
  UnreadableResponseError,
  UnsuitableDatabaseError,
} from './errors.ts'
import { OutageDetector } from './outage-detector.ts'
import type { Connection, ConnectionPool, Query, QueryResult } from './pool.ts'
import type { Statement, Table, TableQuery } from './statements.ts'
import type { TableInspection } from './table-inspection.ts'

/**
 * The state of a `send` call. It's shared with `#execute`, which might still be running after the call has timed out.
 */
interface PendingQuery {
  /** Set when the query is sent. */
  connection: Connection | undefined
  resultPromise: Promise<QueryResult> | undefined
  /** Set when the call has timed out. */
  timeoutError: Error | undefined
}

function throwIfTimedOut({ timeoutError }: PendingQuery): void {
  if (timeoutError !== undefined) throw timeoutError
}

/**
 * Sends queries on pooled connections, and cancels queries that time out.
 *
 * A connection is returned to the pool only when the server has finished its statement, even if the caller has timed
 * out by then. So the server never executes more statements than the pool has connections.
 *
 * **Generations.** Each new connection is checked before its first use: its server must be writable, and the table
 * usable. When a connection breaks, the others may be connected to the same failed server, or to a former primary. So a
 * connection belongs to the generation in which it was checked, each break starts the next generation, and connections
 * of an earlier generation are closed instead of used.
 *
 * **Outages.** While the server is unresponsive, queries wait until the outage detector gets a response from it.
 * Sending these queries would occupy one connection after another, and would leave a session on the server for each
 * connection that is closed.
 */
export class QueryRunner {
  readonly #pool: ConnectionPool
  readonly #timeoutMs: number
  /** How long to wait for the check of a connection, for a cancellation, or for the response to a probe. */
  readonly #graceMs: number
  /** The generation in which each connection was checked. New connections aren't in the map. */
  readonly #checkedGenerations = new WeakMap<Connection, number>()
  /** The current generation (see the class comment). */
  #generation = 0
  /** The connection that was checked last. The outage detector probes the host and port of this connection. */
  #lastChecked: Connection | undefined
  /**
   * Whether a statement may commit on another server (through a foreign table) although this server reports it as
   * canceled.
   */
  #hasForeignTables = false
  #table: Table = { schema: '', resetsCommitSettings: false }
  /** Whether the table has been found. After that, `#table.schema` never changes. */
  #hasTable = false
  /** The SQL and names of the statements for the current `#table`. */
  #renderedStatements = new WeakMap<Statement['text'], Pick<Query, 'text' | 'name'>>()
  readonly #onWarning: (message: string) => void
  readonly #reportedWarnings = new Set<string>()
  readonly #outage = new OutageDetector(() => isResponding(this.#lastChecked, this.#graceMs))

  constructor(pool: ConnectionPool, timeoutMs: number, onWarning: (message: string) => void) {
    this.#pool = pool
    this.#onWarning = onWarning
    this.#timeoutMs = timeoutMs
    this.#graceMs = timeoutMs / 4
    addPoolListeners(pool)
  }

  /**
   * Sends a query and returns its result.
   * @param expiresAt the `performance.now()` time at which the call times out
   * @param onSend called when a connection is available, just before the query is sent
   * @throws StoreUnavailableError if the query wasn't sent; otherwise, the error of the query
   */
  async send(query: TableQuery, expiresAt: number, onSend?: () => void): Promise<QueryResult> {
    const pending: PendingQuery = { connection: undefined, resultPromise: undefined, timeoutError: undefined }
    const startedAt = performance.now()
    const remainingMs = expiresAt - startedAt
    if (remainingMs <= 0) throw new StoreUnavailableError('The call timed out before the statement was sent.')
    try {
      return await withDeadline(this.#execute(query, pending, onSend), remainingMs, () => {
        const expected = pending.connection === undefined ? 'connection to the database' : undefined
        return (pending.timeoutError = new NoResponseError(this.#timeoutMs, expected))
      })
    } catch (error) {
      const { connection, resultPromise, timeoutError } = pending
      if (connection === undefined) {
        if (isProgrammingError(error)) throw error
        // Don't start a new generation, because the pool might merely be exhausted.
        if (isTimeout(error)) this.#outage.begin(startedAt)
        throw new StoreUnavailableError('The database is unavailable.', { cause: error })
      }
      const reason =
        timeoutError === undefined
          ? this.#releaseAfterError(connection, error as Error)
          : await withFallback(this.#cancel(connection, resultPromise!, timeoutError), this.#graceMs, timeoutError)
      if (!this.#hasForeignTables || !isCanceled(reason)) throw reason
      throw new UnconfirmedCommitError('The statement was canceled, but another server may have committed it.')
    }
  }

  /** Stops waiting for an unresponsive server, so that all connections return to the pool. */
  close(): void {
    this.#outage.stop()
  }

  async #execute(query: TableQuery, pending: PendingQuery, onSend?: () => void): Promise<QueryResult> {
    while (this.#outage.isActive) {
      await this.#outage.nextProbe()
      throwIfTimedOut(pending)
    }
    let connection = await this.#connect()
    if (this.#checkedGenerations.get(connection) !== this.#generation)
      connection = await this.#ensureCurrent(connection)
    // The call might have timed out while it was waiting for the connection.
    if (pending.timeoutError !== undefined) connection.release()
    throwIfTimedOut(pending)
    pending.connection = connection
    resetUnconfirmedCommit(connection)
    onSend?.()
    pending.resultPromise = connection.query(this.#renderQuery(query))
    const result = await pending.resultPromise
    this.#hasTable = true
    if (hasUnconfirmedCommit(connection)) throw new UnconfirmedCommitError()
    if (pending.timeoutError === undefined) connection.release()
    return result
  }

  /** Requests a connection, with retries if the last connection has broken, because a failover might be in progress. */
  #connect(): Promise<Connection> {
    const lastCheckedGeneration = this.#lastChecked === undefined ? 0 : this.#checkedGenerations.get(this.#lastChecked)
    return lastCheckedGeneration === this.#generation
      ? this.#pool.connect()
      : connectWithRetry(this.#pool, this.#timeoutMs)
  }

  /**
   * Checks the connection if it's new. If it belongs to an earlier generation, closes it and requests another one.
   * Repeats this until it gets a connection of the current generation.
   */
  async #ensureCurrent(connection: Connection): Promise<Connection> {
    for (let generation; (generation = this.#checkedGenerations.get(connection)) !== this.#generation;) {
      if (generation === undefined) {
        await this.#checkConnection(connection)
      } else {
        connection.release(new Error('Another connection has broken.'))
        connection = await this.#connect()
      }
    }
    return connection
  }

  async #checkConnection(connection: Connection): Promise<void> {
    let generation: number
    let hadTable: boolean
    let inspection: TableInspection
    addConnectionListeners(connection)
    try {
      do {
        generation = this.#generation
        hadTable = this.#hasTable
        const inspecting = checkConnection(connection, hadTable ? this.#table.schema : null)
        inspection = await withDeadline(inspecting, this.#graceMs, () => new NoResponseError(this.#graceMs))
        // If another connection has found the table in the meantime, check again, in that table's schema.
      } while (this.#hasTable && !hadTable)
      this.#applyInspection(inspection)
    } catch (error) {
      // Close older connections too: they use either the unsuitable table, or one that new connections no longer find.
      if (error instanceof UnsuitableDatabaseError) this.#startNewGeneration()
      connection.release(error as Error)
      throw error
    }
    // Don't use `this.#generation` here: another connection might have broken during the check.
    this.#checkedGenerations.set(connection, generation)
    this.#lastChecked = connection
  }

  /** Makes all connections that have been checked so far close before their next use. */
  #startNewGeneration(): void {
    this.#generation++
  }

  #applyInspection(inspection: TableInspection): void {
    this.#hasForeignTables = inspection.hasForeignTables
    const schema = this.#hasTable ? this.#table.schema : (inspection.schema ?? inspection.currentSchema)!
    const resetsCommitSettings = this.#table.resetsCommitSettings || inspection.mayCommitEarly
    if (schema !== this.#table.schema || resetsCommitSettings !== this.#table.resetsCommitSettings) {
      this.#table = { schema, resetsCommitSettings }
      this.#renderedStatements = new WeakMap()
    }
    if (inspection.schema === null) return
    this.#hasTable = true
    for (const warning of warningsOf(inspection)) {
      if (!this.#reportedWarnings.has(warning)) this.#onWarning(warning)
      this.#reportedWarnings.add(warning)
    }
  }

  #renderQuery({ text: renderText, name, ...query }: TableQuery): Query {
    let rendered = this.#renderedStatements.get(renderText)
    if (rendered === undefined) {
      const text = renderText(this.#table)
      // Behind a pooler, another store might have prepared its own statements in this session. A digest of the text
      // ensures that a name never refers to two different statements.
      const digest = createHash('sha256').update(text).digest('hex').slice(0, 16)
      rendered = { text, name: `${name} ${digest}` }
      this.#renderedStatements.set(renderText, rendered)
    }
    return { ...query, text: rendered.text, name: name === undefined ? undefined : rendered.name }
  }

  /**
   * Cancels a statement that has timed out. Keeps the connection until the server has finished the statement; otherwise
   * the pool would open another connection, and the server would execute more statements than the pool allows.
   * @returns the error to report: the statement's own error, or `timeoutError` if its outcome is unknown
   */
  async #cancel(connection: Connection, resultPromise: Promise<QueryResult>, timeoutError: Error): Promise<Error> {
    const outcome = resultPromise.then(
      () => new UnconfirmedCommitError(),
      (error: unknown) => error as Error,
    )
    const wasRequested = await this.#requestCancel(connection)
    // The server was unresponsive and now responds again, so repeat the request.
    if (!wasRequested) await this.#requestCancel(connection)
    const error = await withFallback(outcome, this.#graceMs, timeoutError)
    if (wasRequested && error !== timeoutError) return this.#releaseAfterError(connection, error)
    // Close the connection, because a cancel request that is still in transit would hit the connection's next
    // statement.
    this.#startNewGeneration()
    connection.release(error)
    return error
  }

  /**
   * Sends a cancel request.
   * @returns false if the server was unresponsive; resolves only when the server responds again
   */
  async #requestCancel(connection: Connection): Promise<boolean> {
    const startedAt = performance.now()
    const cancelError = await cancelStatement(connection, this.#graceMs).catch((error: unknown) => error)
    // Unless the attempt timed out, the request was sent, or it can't be sent at all.
    if (!isTimeout(cancelError)) return true
    this.#startNewGeneration()
    this.#outage.begin(startedAt)
    while (this.#outage.isActive) await this.#outage.nextProbe()
    return false
  }

  /** Releases a connection whose statement has failed, and returns the error. */
  #releaseAfterError(connection: Connection, error: Error): Error {
    const isBroken = breaksConnection(error)
    // Check the connection again before its next use: by then, the table might exist, in any schema on the search_path.
    if (!this.#hasTable) this.#checkedGenerations.delete(connection)
    const release = (): void => connection.release(isBroken ? error : undefined)
    // A response that the driver can't parse doesn't affect the other connections.
    if (isBroken && !(error instanceof UnreadableResponseError)) this.#startNewGeneration()
    // If the connection broke without the server noticing, the server is still executing the statement.
    if (isBroken && !isServerError(error)) cancelStatement(connection, this.#graceMs).then(release, release)
    else release()
    return error
  }
}

/** Returns the result of a promise, or `fallback` if the promise rejects or takes too long. */
function withFallback<T>(promise: Promise<T>, timeoutMs: number, fallback: T): Promise<T> {
  return Promise.resolve(withDeadline(promise, timeoutMs, () => undefined)).catch(() => fallback)
}
