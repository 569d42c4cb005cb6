import { setImmediate } from 'node:timers/promises'
import { withDeadline } from '../../maybe-promise.ts'
import { StoreUnavailableError } from '../../plants/store.ts'
import { cancelStatement, isAnswering } from './cancel.ts'
import { checkConnection } from './check.ts'
import {
  breaksConnection,
  isCancelled,
  isFault,
  isFromServer,
  isTimeout,
  NoAnswerError,
  UnconfirmedError,
} from './failure.ts'
import type { Connection, LendingPool, Query, QueryResult } from './pool.ts'
import { connectSoon } from './connect-soon.ts'
import { Silence } from './silence.ts'

/** How often a server is told to cancel a statement: a second time if it said nothing, and says something again. */
const MAX_TRIES = 2

/** A query on its way. */
class Call {
  readonly startedAt = performance.now()
  connection: Connection | undefined
  /** Settles when the server has the statement behind it. Not there before it is sent. */
  answer: Promise<QueryResult> | undefined
  #timeout: Error | undefined

  /** Notes why nobody waits for it any more. */
  giveUp(timeout: Error): Error {
    this.#timeout = timeout
    return timeout
  }

  isLate(): boolean {
    return this.#timeout !== undefined
  }

  throwIfLate(): void {
    if (this.#timeout !== undefined) throw this.#timeout
  }
}

/**
 * Sends queries over connections that a pool lends.
 *
 * A connection stays lent until the server has its statement behind it, so the server never has more of them than the
 * pool has connections. A statement that takes too long is cancelled.
 *
 * A connection is used only if it leads to a server that takes writes. That is asked when the connection is new, and again
 * after another one has broken: the others may lead elsewhere by then, or nowhere. While the server says nothing at all,
 * nothing is sent to it: each connection that is given up would leave a session behind.
 */
export class Connections {
  readonly #pool: LendingPool
  readonly #timeoutMs: number
  /** How long the server may take for what is no work. */
  readonly #patienceMs: number
  /** The era in which a connection was checked last. A connection that is not in here is new. */
  readonly #checked = new WeakMap<Connection, number>()
  /** Ends whenever a connection breaks. */
  #era = 0
  /** The last era in which a connection was fit for use. */
  #provenEra = 0
  /** Connections that were checked last in this era, or earlier, lead to a server that has gone. */
  #lostEra = -1
  /** The one that was checked last: what its name leads to is asked whether the server is back. */
  #latest: Connection | undefined
  /** Whether the server may have told another one to commit, and be cancelled while it waits for the answer. */
  #hasForeignTables = false
  readonly #silence = new Silence(() => isAnswering(this.#latest, this.#patienceMs))

  constructor(pool: LendingPool, timeoutMs: number) {
    this.#pool = pool
    this.#timeoutMs = timeoutMs
    this.#patienceMs = timeoutMs / 4
    // The server may end a session with the same packet that opens it, before `connect()` has settled.
    if (!heard.has(pool)) pool.on?.('connect', listen)
    heard.add(pool)
  }

  /**
   * Sends a query.
   * @throws StoreUnavailableError if it was not sent; else what came of it
   */
  async send(query: Query): Promise<QueryResult> {
    const call = new Call()
    try {
      return await withDeadline(this.#call(query, call), this.#timeoutMs, () =>
        call.giveUp(new NoAnswerError(this.#timeoutMs)),
      )
    } catch (error) {
      const { connection, answer } = call
      if (connection === undefined || answer === undefined) throw this.#refuse(error, call.startedAt)
      const reason = call.isLate()
        ? await this.#cancel(connection, answer, error as Error)
        : this.#takeBack(connection, error as Error)
      throw this.#hasForeignTables && isCancelled(reason) ? new UnconfirmedError(CANCELLED) : reason
    }
  }

  /** Waits no longer for a server that says nothing: what is lent comes back. */
  close(): void {
    this.#silence.stop()
  }

  async #call(query: Query, call: Call): Promise<QueryResult> {
    if (this.#silence.over !== undefined) await this.#silence.over
    call.throwIfLate()
    let connection = await this.#connect()
    if (this.#checked.get(connection) !== this.#era) connection = await this.#fit(connection)
    if (call.isLate()) connection.release()
    call.throwIfLate()
    call.connection = connection
    unconfirmed.delete(connection)
    call.answer = connection.query(query)
    const result = await call.answer
    if (unconfirmed.has(connection)) throw new UnconfirmedError(UNCONFIRMED)
    if (!call.isLate()) connection.release()
    return result
  }

  #connect(): Promise<Connection> {
    return this.#provenEra === this.#era ? this.#pool.connect() : connectSoon(this.#pool, this.#timeoutMs)
  }

  /** Checks a connection, and then others until one is fit for use. */
  async #fit(unchecked: Connection): Promise<Connection> {
    for (let connection = unchecked; ; connection = await this.#connect()) {
      const startedAt = performance.now()
      const era = this.#era
      const lastEra = this.#checked.get(connection)
      listen(connection)
      try {
        if (lastEra !== undefined && lastEra <= this.#lostEra) throw new Error('The server has gone.')
        const check = checkConnection(connection)
        this.#hasForeignTables = await withDeadline(check, this.#patienceMs, () => new NoAnswerError(this.#patienceMs))
        this.#checked.set(connection, era)
        this.#provenEra = era
        this.#latest = connection
        return connection
      } catch (error) {
        connection.release(error as Error)
        // An old connection says nothing about what a new one would meet.
        if (lastEra === undefined) throw error
        if (isTimeout(error)) {
          await this.#missAnswer(startedAt)
          // A new connection is answered. The others that are as old as this one are not.
          this.#lostEra = Math.max(this.#lostEra, lastEra)
        }
      }
    }
  }

  /** Says why a query was not sent. */
  #refuse(error: unknown, startedAt: number): unknown {
    if (isFault(error)) return error
    if (isTimeout(error)) void this.#missAnswer(startedAt)
    return new StoreUnavailableError('The database cannot be used now.', { cause: error })
  }

  /** Has the server cancel a statement that has had its time. Returns what came of it, if that is known soon. */
  async #cancel(connection: Connection, answer: Promise<QueryResult>, timeout: Error): Promise<Error> {
    const outcome = answer.then(
      () => new UnconfirmedError(UNCONFIRMED),
      (error: unknown) => error as Error,
    )
    return inTime(this.#end(connection, outcome, timeout), this.#patienceMs, timeout)
  }

  /**
   * Keeps a connection until its statement is over in the server: until then another one in its place would be one too
   * many there. Returns what came of the statement.
   */
  async #end(connection: Connection, outcome: Promise<Error>, timeout: Error): Promise<Error> {
    const isOver = (): Promise<boolean> => Promise.race([outcome.then(() => true), setImmediate(false)])
    let tries = 1
    while (!(await this.#tellToCancel(connection)) && !(await isOver()) && tries < MAX_TRIES) tries++
    const error = await inTime(outcome, this.#patienceMs, timeout)
    if (tries === 1 && error !== timeout) return this.#takeBack(connection, error)
    // A cancellation that is still on its way would hit the connection's next statement.
    this.#era++
    connection.release(error)
    return error
  }

  /** Whether the server was told to cancel, or cannot be told. If it says nothing, settles when it does again. */
  async #tellToCancel(connection: Connection): Promise<boolean> {
    const startedAt = performance.now()
    try {
      await cancelStatement(connection, this.#patienceMs)
      return true
    } catch (error) {
      if (!isTimeout(error)) return true
      await this.#missAnswer(startedAt)
      return false
    }
  }

  /** Gives a connection back whose statement has failed. Returns why. */
  #takeBack(connection: Connection, error: Error): Error {
    if (error instanceof UnconfirmedError || (isFromServer(error) && !breaksConnection(error))) {
      connection.release()
      return error
    }
    this.#era++
    const close = (): void => connection.release(error)
    // A server that has not noticed that the connection broke goes on with the statement.
    if (isFromServer(error)) close()
    else cancelStatement(connection, this.#patienceMs).then(close, close)
    return error
  }

  /** Notes that what was asked then was not answered. Settles when the server says something again. */
  async #missAnswer(askedAt: number): Promise<void> {
    this.#era++
    this.#silence.begin(askedAt)
    await this.#silence.over
  }
}

/** What comes of a promise, or what stands in for it if nothing comes in time. */
function inTime<T>(promise: Promise<T>, ms: number, late: T): Promise<T> {
  return Promise.resolve(withDeadline(promise, ms, () => new NoAnswerError(ms))).catch(() => late)
}

const CANCELLED = 'The statement was cancelled. Another server may have committed it.'
const UNCONFIRMED = 'The statement was committed, but its standby has not confirmed it.'

/** The function of PostgreSQL that waits for the standby. It speaks only if it is told to wait no longer. */
const WAIT_FOR_STANDBY = 'SyncRepWaitForLSN'

/** Connections whose last statement was committed without the standby, as somebody had the server wait no longer. */
const unconfirmed = new WeakSet<Connection>()

/** Pools and connections that have listeners. Several stores may share a pool. */
const heard = new WeakSet<LendingPool | Connection>()

/**
 * Listens to a connection, as one that breaks while it is lent would end the process if nobody did. The pool may have no
 * `on`, and may have made the connection before the store.
 */
function listen(connection: Connection): void {
  if (heard.has(connection)) return
  heard.add(connection)
  connection.on('error', () => undefined)
  connection.on('notice', ({ routine }) => routine === WAIT_FOR_STANDBY && unconfirmed.add(connection))
}
