import { createHash } from 'node:crypto'
import { withDeadline } from '../../maybe-promise.ts'
import { StoreUnavailableError } from '../../plants/store.ts'
import { performance } from '../../timers.ts'
import { cancelStatement, isResponding } from './cancel.ts'
import { checkConnection, connectWithRetry, OutageDetector, warningsOf } from './connect.ts'
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
import { closeOnParseError } from './close-on-parse-error.ts'
import type { Connection, ConnectionPool, Query, QueryResult } from './pool.ts'
import type { TableInspection, Statement, Table, TableQuery } from './statements.ts'

interface PendingQuery {
  connection: Connection | undefined
  resultPromise: Promise<QueryResult> | undefined
  /** Why nobody waits for it any more. */
  timeoutError: Error | undefined
}

function throwIfTimedOut({ timeoutError }: PendingQuery): void {
  if (timeoutError !== undefined) throw timeoutError
}

/**
 * Sends queries over connections that a pool lends. One stays lent until the server is done with its statement, so the
 * server never has more statements than the pool has connections. A statement that takes too long is cancelled.
 *
 * A new connection is used only if its server takes writes. If one breaks, all that are older are closed instead of
 * used: they may lead to a server that has gone, or takes no writes any more. While a server says nothing at all,
 * nothing is sent to it, as each connection that is given up would leave a session behind.
 */
export class QueryRunner {
  readonly #pool: ConnectionPool
  readonly #timeoutMs: number
  /** How long to wait for a check, a cancellation or a sign of life. */
  readonly #graceMs: number
  /** The era in which each connection was checked; a new one is not in here. */
  readonly #checkedGenerations = new WeakMap<Connection, number>()
  /** Ends when a connection breaks. */
  #generation = 0
  /** The connection that was checked last: it tells where to ask whether the server is back. */
  #lastChecked: Connection | undefined
  /** Whether the server may have told another one to commit, and be cancelled while it waits for the answer. */
  #hasForeignTables = false
  #table: Table = { schema: '', resetsCommitSettings: false }
  /** Whether the table has been found. From then on, its schema doesn't change. */
  #hasTable = false
  /** The statements, with the name of the table in them. */
  #renderedStatements = new WeakMap<Statement['text'], Pick<Query, 'text' | 'name'>>()
  readonly #onWarning: (message: string) => void
  readonly #reportedWarnings = new Set<string>()
  readonly #outage = new OutageDetector(() => isResponding(this.#lastChecked, this.#graceMs))

  constructor(pool: ConnectionPool, timeoutMs: number, onWarning: (message: string) => void) {
    this.#pool = pool
    this.#onWarning = onWarning
    this.#timeoutMs = timeoutMs
    this.#graceMs = timeoutMs / 4
    if (listenedTo.has(pool)) return
    listenedTo.add(pool)
    pool.on?.('error', () => undefined)
    // The packet that opens a session may end it, too, before `connect()` has settled.
    pool.on?.('connect', addListeners)
  }

  /**
   * @param onSend called when a connection is there, and the query is about to be sent
   * @throws StoreUnavailableError if it was not sent, else its error
   */
  async send(query: TableQuery, expiresAt: number, onSend?: () => void): Promise<QueryResult> {
    const pending: PendingQuery = { connection: undefined, resultPromise: undefined, timeoutError: undefined }
    const startedAt = performance.now()
    const remainingMs = expiresAt - startedAt
    if (remainingMs <= 0) throw new StoreUnavailableError('No time was left for another statement.')
    try {
      return await withDeadline(this.#execute(query, pending, onSend), remainingMs, () => {
        const expected = pending.connection === undefined ? 'connection to the database' : undefined
        return (pending.timeoutError = new NoResponseError(this.#timeoutMs, expected))
      })
    } catch (error) {
      const { connection, resultPromise, timeoutError } = pending
      if (connection === undefined) {
        if (isProgrammingError(error)) throw error
        // The pool may just be full, so this says nothing of its other connections.
        if (isTimeout(error)) this.#outage.begin(startedAt)
        throw new StoreUnavailableError('The database cannot be used now.', { cause: error })
      }
      const reason =
        timeoutError === undefined
          ? this.#releaseAfterError(connection, error as Error)
          : await withFallback(this.#cancel(connection, resultPromise!, timeoutError), this.#graceMs, timeoutError)
      if (!this.#hasForeignTables || !isCanceled(reason)) throw reason
      throw new UnconfirmedCommitError('The statement was cancelled. Another server may have committed it.')
    }
  }

  /** Stops waiting for a silent server, so that the pool gets back what it lent. */
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
    if (pending.timeoutError !== undefined) connection.release()
    throwIfTimedOut(pending)
    pending.connection = connection
    unconfirmedConnections.delete(connection)
    onSend?.()
    pending.resultPromise = connection.query(this.#renderQuery(query))
    const result = await pending.resultPromise
    this.#hasTable = true
    if (unconfirmedConnections.has(connection)) throw new UnconfirmedCommitError()
    if (pending.timeoutError === undefined) connection.release()
    return result
  }

  #connect(): Promise<Connection> {
    const lastCheckedGeneration = this.#lastChecked === undefined ? 0 : this.#checkedGenerations.get(this.#lastChecked)
    return lastCheckedGeneration === this.#generation
      ? this.#pool.connect()
      : connectWithRetry(this.#pool, this.#timeoutMs)
  }

  /** Checks new connections, and closes those of earlier eras, until there is one of this era. */
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
    addListeners(connection)
    try {
      do {
        generation = this.#generation
        hadTable = this.#hasTable
        const inspecting = checkConnection(connection, hadTable ? this.#table.schema : null)
        inspection = await withDeadline(inspecting, this.#graceMs, () => new NoResponseError(this.#graceMs))
        // Meanwhile, another connection can have found the table in a schema that isn't in the search_path of this one.
      } while (this.#hasTable && !hadTable)
      this.#applyInspection(inspection)
    } catch (error) {
      // The older ones lead to the same table, or to the one that others do not find any more.
      if (error instanceof UnsuitableDatabaseError) this.#generation++
      connection.release(error as Error)
      throw error
    }
    this.#checkedGenerations.set(connection, generation)
    this.#lastChecked = connection
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
      // A pooler can lend this store a session in which another one has prepared its statements: a name must never stand
      // for two texts.
      const digest = createHash('sha256').update(text).digest('hex').slice(0, 16)
      rendered = { text, name: `${name} ${digest}` }
      this.#renderedStatements.set(renderText, rendered)
    }
    return { ...query, text: rendered.text, name: name === undefined ? undefined : rendered.name }
  }

  /** Keeps a connection until the server is done with its statement: another in its place would be one too many. */
  async #cancel(connection: Connection, resultPromise: Promise<QueryResult>, timeoutError: Error): Promise<Error> {
    const outcome = resultPromise.then(
      () => new UnconfirmedCommitError(),
      (error: unknown) => error as Error,
    )
    const wasRequested = await this.#requestCancel(connection)
    // It was silent, and says something again.
    if (!wasRequested) await this.#requestCancel(connection)
    const error = await withFallback(outcome, this.#graceMs, timeoutError)
    if (wasRequested && error !== timeoutError) return this.#releaseAfterError(connection, error)
    // A cancellation that is still on its way would hit the connection's next statement.
    this.#generation++
    connection.release(error)
    return error
  }

  /** Whether the server was told to cancel, or cannot be told. If it says nothing, settles when it does again. */
  async #requestCancel(connection: Connection): Promise<boolean> {
    const startedAt = performance.now()
    const cancelError = await cancelStatement(connection, this.#graceMs).catch((error: unknown) => error)
    if (!isTimeout(cancelError)) return true
    this.#generation++
    this.#outage.begin(startedAt)
    while (this.#outage.isActive) await this.#outage.nextProbe()
    return false
  }

  /** Gives a connection back whose statement has failed. Returns why. */
  #releaseAfterError(connection: Connection, error: Error): Error {
    const isBroken = breaksConnection(error)
    // The table may be there the next time, in any schema of the search_path.
    if (!this.#hasTable) this.#checkedGenerations.delete(connection)
    const release = (): void => connection.release(isBroken ? error : undefined)
    // A response that the driver can't parse says nothing of the other connections.
    if (isBroken && !(error instanceof UnreadableResponseError)) this.#generation++
    // A server that has not noticed that the connection broke goes on with the statement.
    if (isBroken && !isServerError(error)) cancelStatement(connection, this.#graceMs).then(release, release)
    else release()
    return error
  }
}

function withFallback<T>(promise: Promise<T>, timeoutMs: number, fallback: T): Promise<T> {
  return Promise.resolve(withDeadline(promise, timeoutMs, () => undefined)).catch(() => fallback)
}

/** The function of PostgreSQL that waits for the standby. It speaks only if it is told to wait no longer. */
const STANDBY_WAIT_ROUTINE = 'SyncRepWaitForLSN'
/** Connections whose last statement was committed without the standby: the server was told to wait no longer. */
const unconfirmedConnections = new WeakSet<Connection>()
/** Pools and connections that have listeners. Several stores may share a pool. */
const listenedTo = new WeakSet<ConnectionPool | Connection>()

/** Otherwise a connection that breaks while it is lent would end the process. The pool may be older than the store. */
function addListeners(connection: Connection): void {
  if (listenedTo.has(connection)) return
  listenedTo.add(connection)
  connection.on('error', () => undefined)
  closeOnParseError(connection.connection?.stream)
  connection.on('notice', ({ routine }) => routine === STANDBY_WAIT_ROUTINE && unconfirmedConnections.add(connection))
}
