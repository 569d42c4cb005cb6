import { EventEmitter } from 'node:events'
import type { ConnectionPool, Query, QueryResult } from '../../../src/stores/postgres/pool.ts'
import type { TableInspection } from '../../../src/stores/postgres/table-inspection.ts'
import { createServerError } from '../../support/database/errors.ts'
import type { Simulation } from '../simulation.ts'
import type { Call } from '../reference-model.ts'
import type { Network } from './network.ts'
import { SERVER_ERRORS, WRITE_FAILURES, type ConnectFault, type Scenario } from './scenario.ts'
import type { Cluster } from './cluster.ts'
import { isInspection, Session } from './session.ts'
import { isProbeWrite, type TrackedQuery } from './tracked-query.ts'
import { TrafficChecker } from './traffic-checker.ts'

interface Waiter {
  readonly resolve: (session: Session) => void
  readonly reject: (error: Error) => void
  isSettled: boolean
}

const NORMAL_CONNECT: ConnectFault = { kind: 'slow', ms: 1 }

/** A pool like that of `pg`. Checks that its store uses connections correctly. */
export class Pool extends EventEmitter implements ConnectionPool {
  readonly world: Simulation
  readonly network: Network
  readonly cluster: Cluster
  readonly scenario: Scenario
  readonly sessions = new Set<Session>()
  readonly trafficChecker = new TrafficChecker(this)
  /** The calls of the store in flight. */
  readonly pendingCalls = new Set<Call>()
  /** Whether a create has failed because of `rejectsCreates`, and none has succeeded since. */
  hasSeenCreateFailure = false
  /** How often `connect()` was called. */
  connectCount = 0
  /** Whether the store is closed. */
  isClosed = false
  /** Whether the store has had a usable connection, and so knows the server's address for its checks. */
  hasProvidedUsable = false
  readonly #idle: Session[] = []
  readonly #waiting: Waiter[] = []
  #size = 0
  /** When a connection last broke: the store must close older connections. */
  #lastBreakAt = -Infinity
  /** When a connection may have broken last: the store may close older connections. */
  #lastPossibleBreakAt = -Infinity
  /** When the pooler first rejected a statement name. Statements in flight may still have a name. */
  #namesRejectedAt = Infinity
  /** Whether the pooler has rejected a statement name, even if the statement had already timed out. */
  hasRejectedName = false
  #hasFoundSchema = false

  constructor(cluster: Cluster, network: Network, scenario: Scenario) {
    super()
    this.world = network.world
    this.network = network
    this.cluster = cluster
    this.scenario = scenario
  }

  /** Whether a call is waiting for a connection. */
  get hasWaiters(): boolean {
    return this.#waiting.length > 0
  }

  connect(): Promise<Session> {
    this.connectCount++
    return new Promise((resolve, reject) => {
      const waiter: Waiter = { resolve, reject, isSettled: false }
      this.#waiting.push(waiter)
      const { poolTimeoutMs } = this.scenario
      if (poolTimeoutMs > 0) {
        const error = new Error('timeout exceeded when trying to connect')
        this.world.time.schedule(poolTimeoutMs, () => {
          if (!waiter.isSettled) this.cluster.recordFault(0)
          this.#rejectWaiter(waiter, error)
        })
      }
      this.#serveWaiters()
    })
  }

  #serveWaiters(): void {
    while (this.#waiting.length > 0) {
      const idle = this.#idle.shift()
      if (idle !== undefined) this.#checkOut(this.#waiting.shift()!, idle)
      else if (this.#size < this.scenario.poolSize) this.#openSession(this.#waiting.shift()!)
      else return
    }
  }

  #openSession(waiter: Waiter): void {
    this.#size++
    const { kind, ms } = this.network.nextConnectFault() ?? NORMAL_CONNECT
    this.cluster.recordFault(kind === 'mute' ? 10_000 : ms)
    const fail = (error: Error): void => {
      this.#size--
      this.#rejectWaiter(waiter, error)
      this.#serveWaiters()
    }
    // The kernel times out eventually.
    if (kind === 'mute') return void this.world.time.schedule(10_000, () => fail(new Error('connect ETIMEDOUT')))
    this.network.deliver(ms, () => {
      if (kind === 'refused') return fail(new Error('connect ECONNREFUSED'))
      if (kind === 'full') return fail(createServerError('53300'))
      const session = new Session(this)
      this.sessions.add(session)
      this.emit('connect', session)
      if (kind === 'dies') {
        session.isOpen = false
        session.breakConnection(createServerError('57P01'))
        this.#rejectWaiter(waiter, createServerError('57P01'))
      } else if (waiter.isSettled) {
        this.#idle.push(session)
        this.#serveWaiters()
      } else this.#checkOut(waiter, session)
    })
  }

  #checkOut(waiter: Waiter, session: Session): void {
    waiter.isSettled = true
    session.isCheckedOut = true
    session.isTimedOut = false
    waiter.resolve(session)
  }

  #rejectWaiter(waiter: Waiter, error: Error): void {
    if (waiter.isSettled) return
    waiter.isSettled = true
    const index = this.#waiting.indexOf(waiter)
    if (index !== -1) this.#waiting.splice(index, 1)
    waiter.reject(error)
  }

  /** Called when the store releases a connection. */
  release(session: Session, error: Error | undefined): void {
    const { number, statement, isTimedOut, isBroken, isUnusable, inspectedAt, cancelCount } = session
    this.world.log('session', number, 'released', ...(error === undefined ? [] : ['and closed:', error]))
    this.world.check(session.isCheckedOut, 'a connection is released once:', number)
    const mayStillBeCanceled = session.unansweredCancelAt !== undefined
    session.isCheckedOut = false
    if (error === undefined) {
      this.world.check(statement === undefined, 'no connection is released for reuse while its statement runs:', number)
      this.world.check(!isUnusable, 'no unusable connection is released for reuse:', number)
      this.world.check(!mayStillBeCanceled, 'no connection with a pending cancellation is released for reuse:', number)
    } else if (error.message === 'Another connection has broken.') {
      // If a statement timed out, the store may learn late that its connection broke.
      const isPending = [...this.sessions].some((other) => other.isCheckedOut && other.isTimedOut && other.isUnusable)
      const isExpected = isPending || inspectedAt <= Math.max(this.#lastPossibleBreakAt, this.network.abandonedAt)
      this.world.check(isExpected, 'no working connection is closed:', number)
    } else {
      const isHanging = isTimedOut && (statement !== undefined || mayStillBeCanceled)
      const hasCause = isHanging || isBroken || isUnusable || !session.isUsable
      this.world.check(hasCause, 'no connection is closed without a reason:', number)
      const wasCancelSent = !mayStillBeCanceled || isBroken || cancelCount === 2
      this.world.check(wasCancelSent, 'a cancellation without a response is retried once:', number)
      const isCanceled = session.pendingCancels === 0 && cancelCount > 0
      this.world.check(!session.isOrphaned || isCanceled, 'the statement of a broken connection is canceled:', number)
      if (isTimedOut && !isUnusable) this.#recordBreak()
    }
    if (error !== undefined) this.#lastPossibleBreakAt = this.world.time.now
    if (error !== undefined || isBroken) this.#removeSession(session)
    else this.#idle.push(session)
    this.#serveWaiters()
  }

  #recordBreak(): void {
    this.#lastBreakAt = this.#lastPossibleBreakAt = this.world.time.now
  }

  #removeSession(session: Session): void {
    if (!this.sessions.delete(session)) return
    this.#size--
    this.network.deliver(0, () => session.breakConnection(new Error('Connection terminated')))
  }

  /** Called when a connection breaks. An idle connection reports the error through its pool. */
  onSessionLost(session: Session, error: Error): void {
    const index = this.#idle.indexOf(session)
    if (index !== -1) this.#idle.splice(index, 1)
    const source: EventEmitter = session.isCheckedOut || index === -1 ? session : this
    const hasListener = !this.sessions.has(session) || source.listenerCount('error') > 0
    this.world.check(hasListener, 'every connection error has a listener:', session.number)
    if (!session.isCheckedOut) this.#removeSession(session)
    if (source.listenerCount('error') > 0) source.emit('error', error)
    this.#serveWaiters()
  }

  /** Called before a query is sent. */
  onQuery(session: Session, query: Query): TrackedQuery {
    const { now } = this.world.time
    if (isInspection(query)) {
      session.inspectedAt = now
      session.isUsable = false
    } else {
      const isStale = session.inspectedAt < this.#lastBreakAt && this.#lastBreakAt < now
      this.world.check(
        !isStale,
        'no connection that is older than a break is used without an inspection:',
        session.number,
      )
      this.world.check(session.isUsable, 'no unusable connection is used:', session.number)
    }
    const mayHaveName =
      query.name === undefined ||
      (this.scenario.preparedStatements && now <= this.#namesRejectedAt + 2 * this.scenario.timeoutMs)
    this.world.check(mayHaveName, 'no statement has a name after a pooler has lost one:', query.name)
    const trackedQuery = this.cluster.trackQuery(query, this.pendingCalls, this.#hasFoundSchema)
    this.trafficChecker.onQuery(trackedQuery)
    for (const { statements, number } of trackedQuery.writes) {
      const lastStatement = statements.at(-1)
      const firstSentAt = lastStatement?.isConflict === true ? lastStatement.firstSentAt : now
      const isInTime = now - firstSentAt <= this.scenario.timeoutMs
      this.world.check(isInTime, 'no statement is retried after the timeout of its call:', number)
      statements.push({ trackedQuery, sentAt: now, firstSentAt })
    }
    return trackedQuery
  }

  /** Called when the store receives the response to a query. */
  onResponse(session: Session, asked: TrackedQuery, response: QueryResult | Error): void {
    const { query, writes } = asked
    const { now } = this.world.time
    const { code } = response as { code?: string }
    const breaksConnection =
      response instanceof Error && (code === undefined || SERVER_ERRORS[code]?.breaksConnection === true)
    if (isInspection(query)) {
      const inspection =
        'rows' in response ? (JSON.parse(response.rows[0]![0] as string) as TableInspection) : undefined
      const isSuitable =
        inspection?.serverEncoding === 'UTF8' && inspection.clientEncoding === 'UTF8' && inspection.problems === ''
      session.isUsable = isSuitable && !inspection.isReadOnly && inspection.outdated === null
      this.hasProvidedUsable ||= session.isUsable && !session.isTimedOut && session.isCheckedOut
      this.#hasFoundSchema ||= session.isUsable && inspection?.schema === 'public'
      if (inspection !== undefined && !inspection.isReadOnly && !isSuitable) this.#recordBreak()
    } else if (breaksConnection) {
      if (session.isTimedOut) this.#lastPossibleBreakAt = now
      else this.#recordBreak()
    }
    session.isUnusable ||= breaksConnection
    session.isOrphaned ||= breaksConnection && code === undefined && !isInspection(query)
    for (const statement of writes.flatMap(({ statements }) => statements)) {
      if (statement.trackedQuery !== asked) continue
      statement.hasResponse = true
      statement.isConflict = code === '40001' || code === '40P01'
      const { mayBeApplied, isAmbiguous: isUnsure } = code === undefined ? { mayBeApplied: true } : SERVER_ERRORS[code]!
      statement.isApplied = !session.isTimedOut && 'rows' in response
      statement.isRejected =
        !session.isTimedOut &&
        mayBeApplied !== true &&
        isUnsure !== true &&
        !(code === '57014' && this.cluster.hasForeignTables)
    }
    if (!session.isTimedOut) this.trafficChecker.onResponse(asked, response)
    if (isProbeWrite(query) && 'rows' in response) this.hasSeenCreateFailure = false
    if (!session.isTimedOut && writes.some(({ name }) => name !== undefined)) {
      if (WRITE_FAILURES.some((failure) => failure === code)) this.hasSeenCreateFailure = true
      else if ('rowCount' in response && response.rowCount! > 0) this.hasSeenCreateFailure = false
    }
    if (code === '26000' || code === '42P05') {
      this.hasRejectedName = true
      if (!session.isTimedOut) this.#namesRejectedAt = Math.min(this.#namesRejectedAt, now)
    }
  }

  /** Whether a write that was sent before a certain time has no response yet. */
  hasHangingWrite(sentBefore: number): boolean {
    return [...this.pendingCalls].some(({ statements }) => {
      return statements.some(({ sentAt, hasResponse }) => sentAt < sentBefore && !hasResponse)
    })
  }

  /** Whether a pending write was started by a certain time, even if it has not been sent yet. */
  hasWriteStartedBy(time: number): boolean {
    return [...this.pendingCalls].some(({ kind, startedAt }) => kind !== 'list' && startedAt <= time)
  }

  /** Checks that an outcome is reported as unknown only if the server never settled it. */
  checkUnknownOutcome({ statements, number, isUnconfirmed }: Call): void {
    const isKnownUnapplied = statements.every(({ isRejected }) => isRejected)
    this.world.check(!isKnownUnapplied, 'a write that was certainly not applied is not reported as unknown:', number)
    const isKnownApplied = statements.at(-1)?.isApplied === true && !isUnconfirmed
    this.world.check(!isKnownApplied, 'a write that the server confirmed is not reported as unknown:', number)
  }
}
