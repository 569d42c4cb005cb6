import { createHash } from 'node:crypto'
import { withDeadline } from '../../maybe-promise.ts'
import { StoreUnavailableError } from '../../plants/store.ts'
import { performance } from '../../timers.ts'
import { cancelStatement, isAnswering } from './cancel.ts'
import { checkConnection, connectSoon, Silence, warningsOf } from './connect.ts'
import {
  breaksConnection,
  isCancelled,
  isFault,
  isFromServer,
  isTimeout,
  NoAnswerError,
  UnconfirmedError,
  UnreadableResponseError,
  UnsuitableDatabaseError,
} from './failure.ts'
import { guardParser } from './parser-guard.ts'
import type { Connection, ConnectionPool, Query, QueryResult } from './pool.ts'
import type { Look, Statement, Table, TableQuery } from './statements.ts'

interface PendingQuery {
  connection: Connection | undefined
  answer: Promise<QueryResult> | undefined
  /** Why nobody waits for it any more. */
  timeout: Error | undefined
}

function throwIfLate({ timeout }: PendingQuery): void {
  if (timeout !== undefined) throw timeout
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
  readonly #patienceMs: number
  /** The era in which each connection was checked; a new one is not in here. */
  readonly #checked = new WeakMap<Connection, number>()
  /** Ends when a connection breaks. */
  #era = 0
  /** The connection that was checked last: it tells where to ask whether the server is back. */
  #latest: Connection | undefined
  /** Whether the server may have told another one to commit, and be cancelled while it waits for the answer. */
  #hasForeignTables = false
  #table: Table = { schema: '', ensuresCommits: false }
  /** Whether the table has been found. From then on, its schema doesn't change. */
  #hasTable = false
  /** The statements, with the name of the table in them. */
  #texts = new WeakMap<Statement['text'], Pick<Query, 'text' | 'name'>>()
  readonly #onWarning: (message: string) => void
  readonly #warnings = new Set<string>()
  readonly #silence = new Silence(() => isAnswering(this.#latest, this.#patienceMs))

  constructor(pool: ConnectionPool, timeoutMs: number, onWarning: (message: string) => void) {
    this.#pool = pool
    this.#onWarning = onWarning
    this.#timeoutMs = timeoutMs
    this.#patienceMs = timeoutMs / 4
    if (heard.has(pool)) return
    heard.add(pool)
    pool.on?.('error', () => undefined)
    // The packet that opens a session may end it, too, before `connect()` has settled.
    pool.on?.('connect', listen)
  }

  /**
   * @param onSend called when a connection is there, and the query is about to be sent
   * @throws StoreUnavailableError if it was not sent, else its error
   */
  async send(query: TableQuery, expiresAt: number, onSend?: () => void): Promise<QueryResult> {
    const pending: PendingQuery = { connection: undefined, answer: undefined, timeout: undefined }
    const startedAt = performance.now()
    const ms = expiresAt - startedAt
    if (ms <= 0) throw new StoreUnavailableError('No time was left for another statement.')
    try {
      return await withDeadline(this.#run(query, pending, onSend), ms, () => {
        const missing = pending.connection === undefined ? 'connection to the database' : undefined
        return (pending.timeout = new NoAnswerError(this.#timeoutMs, missing))
      })
    } catch (error) {
      const { connection, answer, timeout } = pending
      if (connection === undefined) {
        if (isFault(error)) throw error
        // The pool may just be full, so this says nothing of its other connections.
        if (isTimeout(error)) this.#silence.begin(startedAt)
        throw new StoreUnavailableError('The database cannot be used now.', { cause: error })
      }
      const reason =
        timeout === undefined
          ? this.#takeBack(connection, error as Error)
          : await withFallback(this.#cancel(connection, answer!, timeout), this.#patienceMs, timeout)
      if (!this.#hasForeignTables || !isCancelled(reason)) throw reason
      throw new UnconfirmedError('The statement was cancelled. Another server may have committed it.')
    }
  }

  /** Stops waiting for a silent server, so that the pool gets back what it lent. */
  close(): void {
    this.#silence.stop()
  }

  async #run(query: TableQuery, pending: PendingQuery, onSend?: () => void): Promise<QueryResult> {
    while (this.#silence.isOn) {
      await this.#silence.next()
      throwIfLate(pending)
    }
    let connection = await this.#connect()
    if (this.#checked.get(connection) !== this.#era) connection = await this.#renew(connection)
    if (pending.timeout !== undefined) connection.release()
    throwIfLate(pending)
    pending.connection = connection
    unconfirmed.delete(connection)
    onSend?.()
    pending.answer = connection.query(this.#complete(query))
    const result = await pending.answer
    this.#hasTable = true
    if (unconfirmed.has(connection)) throw new UnconfirmedError()
    if (pending.timeout === undefined) connection.release()
    return result
  }

  #connect(): Promise<Connection> {
    const provenEra = this.#latest === undefined ? 0 : this.#checked.get(this.#latest)
    return provenEra === this.#era ? this.#pool.connect() : connectSoon(this.#pool, this.#timeoutMs)
  }

  /** Checks new connections, and closes those of earlier eras, until there is one of this era. */
  async #renew(connection: Connection): Promise<Connection> {
    for (let era; (era = this.#checked.get(connection)) !== this.#era;) {
      if (era === undefined) {
        await this.#check(connection)
      } else {
        connection.release(new Error('Another connection has broken.'))
        connection = await this.#connect()
      }
    }
    return connection
  }

  async #check(connection: Connection): Promise<void> {
    let era: number
    let hadTable: boolean
    let look: Look
    listen(connection)
    try {
      do {
        era = this.#era
        hadTable = this.#hasTable
        const check = checkConnection(connection, hadTable ? this.#table.schema : null)
        look = await withDeadline(check, this.#patienceMs, () => new NoAnswerError(this.#patienceMs))
        // Meanwhile, another connection can have found the table in a schema that isn't in the search_path of this one.
      } while (this.#hasTable && !hadTable)
      this.#learn(look)
    } catch (error) {
      // The older ones lead to the same table, or to the one that others do not find any more.
      if (error instanceof UnsuitableDatabaseError) this.#era++
      connection.release(error as Error)
      throw error
    }
    this.#checked.set(connection, era)
    this.#latest = connection
  }

  #learn(look: Look): void {
    this.#hasForeignTables = look.hasForeignTables
    const schema = this.#hasTable ? this.#table.schema : (look.schema ?? look.currentSchema)!
    const ensuresCommits = this.#table.ensuresCommits || look.mayCommitEarly
    if (schema !== this.#table.schema || ensuresCommits !== this.#table.ensuresCommits) {
      this.#table = { schema, ensuresCommits }
      this.#texts = new WeakMap()
    }
    if (look.schema === null) return
    this.#hasTable = true
    for (const warning of warningsOf(look)) {
      if (!this.#warnings.has(warning)) this.#onWarning(warning)
      this.#warnings.add(warning)
    }
  }

  #complete({ text: textOf, name, ...query }: TableQuery): Query {
    let completed = this.#texts.get(textOf)
    if (completed === undefined) {
      const text = textOf(this.#table)
      // A pooler can lend this store a session in which another one has prepared its statements: a name must never stand
      // for two texts.
      const digest = createHash('sha256').update(text).digest('hex').slice(0, 16)
      completed = { text, name: `${name} ${digest}` }
      this.#texts.set(textOf, completed)
    }
    return { ...query, text: completed.text, name: name === undefined ? undefined : completed.name }
  }

  /** Keeps a connection until the server is done with its statement: another in its place would be one too many. */
  async #cancel(connection: Connection, answer: Promise<QueryResult>, timeout: Error): Promise<Error> {
    const outcome = answer.then(
      () => new UnconfirmedError(),
      (error: unknown) => error as Error,
    )
    const wasTold = await this.#tellToCancel(connection)
    // It was silent, and says something again.
    if (!wasTold) await this.#tellToCancel(connection)
    const error = await withFallback(outcome, this.#patienceMs, timeout)
    if (wasTold && error !== timeout) return this.#takeBack(connection, error)
    // A cancellation that is still on its way would hit the connection's next statement.
    this.#era++
    connection.release(error)
    return error
  }

  /** Whether the server was told to cancel, or cannot be told. If it says nothing, settles when it does again. */
  async #tellToCancel(connection: Connection): Promise<boolean> {
    const startedAt = performance.now()
    const problem = await cancelStatement(connection, this.#patienceMs).catch((error: unknown) => error)
    if (!isTimeout(problem)) return true
    this.#era++
    this.#silence.begin(startedAt)
    while (this.#silence.isOn) await this.#silence.next()
    return false
  }

  /** Gives a connection back whose statement has failed. Returns why. */
  #takeBack(connection: Connection, error: Error): Error {
    const isBroken = breaksConnection(error)
    // The table may be there the next time, in any schema of the search_path.
    if (!this.#hasTable) this.#checked.delete(connection)
    const release = (): void => connection.release(isBroken ? error : undefined)
    // A response that the driver can't parse says nothing of the other connections.
    if (isBroken && !(error instanceof UnreadableResponseError)) this.#era++
    // A server that has not noticed that the connection broke goes on with the statement.
    if (isBroken && !isFromServer(error)) cancelStatement(connection, this.#patienceMs).then(release, release)
    else release()
    return error
  }
}

function withFallback<T>(promise: Promise<T>, ms: number, fallback: T): Promise<T> {
  return Promise.resolve(withDeadline(promise, ms, () => undefined)).catch(() => fallback)
}

/** The function of PostgreSQL that waits for the standby. It speaks only if it is told to wait no longer. */
const WAIT_FOR_STANDBY = 'SyncRepWaitForLSN'
/** Connections whose last statement was committed without the standby: the server was told to wait no longer. */
const unconfirmed = new WeakSet<Connection>()
/** Pools and connections that have listeners. Several stores may share a pool. */
const heard = new WeakSet<ConnectionPool | Connection>()

/** Otherwise a connection that breaks while it is lent would end the process. The pool may be older than the store. */
function listen(connection: Connection): void {
  if (heard.has(connection)) return
  heard.add(connection)
  connection.on('error', () => undefined)
  guardParser(connection.connection?.stream)
  connection.on('notice', ({ routine }) => routine === WAIT_FOR_STANDBY && unconfirmed.add(connection))
}
