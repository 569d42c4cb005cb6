import { EventEmitter } from 'node:events'
import type { ConnectionPool, Query, QueryResult } from '../../../src/stores/postgres/pool.ts'
import type { TableInspection } from '../../../src/stores/postgres/table-inspection.ts'
import { createServerError } from '../../support/database/errors.ts'
import type { Simulation } from '../simulation.ts'
import type { Call } from '../reference-model.ts'
import type { Network } from './network.ts'
import { SERVER_ERRORS, WRITE_FAILURES, type ConnectFault, type Scenario } from './scenario.ts'
import type { TrackedQuery, Cluster } from './cluster.ts'
import { isInspection, Session } from './session.ts'
import { isProbeWrite, TrafficChecker } from './traffic-checker.ts'

interface Waiter {
  readonly resolve: (session: Session) => void
  readonly reject: (error: Error) => void
  isSettled: boolean
}

const NORMAL_CONNECT: ConnectFault = { kind: 'slow', ms: 1 }

/** A pool as `pg` has it, which sees that its store keeps to the rules of connections. */
export class Pool extends EventEmitter implements ConnectionPool {
  readonly world: Simulation
  readonly network: Network
  readonly cluster: Cluster
  readonly scenario: Scenario
  readonly sessions = new Set<Session>()
  readonly trafficChecker = new TrafficChecker(this)
  /** The calls of the store that are under way. */
  readonly pendingCalls = new Set<Call>()
  /** Whether a create has failed as all do for a while, and none has succeeded since. */
  hasSeenCreateFailure = false
  /** How often it was asked for a connection. */
  connectCount = 0
  /** Whether its store is closed. */
  isClosed = false
  /** Whether it has lent a connection that was fit for use: then the store knows where to ask for the server. */
  hasProvidedUsable = false
  readonly #idle: Session[] = []
  readonly #waiting: Waiter[] = []
  #size = 0
  /** When a connection broke last: surely, so that older ones must be closed, or perhaps, so that they may be. */
  #lastBreakAt = -Infinity
  #lastPossibleBreakAt = -Infinity
  /** When the pooler first told that it keeps no names. Statements that were under way may have one yet. */
  #namesRejectedAt = Infinity
  /** Whether the pooler has told that, also to a store that does not listen any more. */
  hasRejectedName = false
  #hasFoundSchema = false

  constructor(cluster: Cluster, network: Network, scenario: Scenario) {
    super()
    this.world = network.world
    this.network = network
    this.cluster = cluster
    this.scenario = scenario
  }

  /** Whether somebody waits for a connection. */
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
    // The kernel gives up some time.
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

  /** A connection comes back. */
  release(session: Session, error: Error | undefined): void {
    const {
      number,
      statement,
      isTimedOut: isLate,
      isBroken,
      isUnusable: isSpoilt,
      inspectedAt: lookedAt,
      cancelCount: cancellations,
    } = session
    this.world.log('session', number, 'comes back', ...(error === undefined ? [] : ['to be closed:', error]))
    this.world.check(session.isCheckedOut, 'no connection is given back twice:', number)
    const mayStillBeCancelled = session.unansweredCancelAt !== undefined
    session.isCheckedOut = false
    if (error === undefined) {
      this.world.check(statement === undefined, 'no connection is given back while its statement runs:', number)
      this.world.check(!isSpoilt, 'no connection is given back that broke:', number)
      this.world.check(!mayStillBeCancelled, 'no connection is given back that a cancellation may still hit:', number)
    } else if (error.message === 'Another connection has broken.') {
      // The store may learn late that one broke whose statement was late.
      const isPending = [...this.sessions].some((other) => other.isCheckedOut && other.isTimedOut && other.isUnusable)
      const isExpected = isPending || lookedAt <= Math.max(this.#lastPossibleBreakAt, this.network.abandonedAt)
      this.world.check(isExpected, 'no sound connection is closed:', number)
    } else {
      const isHanging = isLate && (statement !== undefined || mayStillBeCancelled)
      const hasCause = isHanging || isBroken || isSpoilt || !session.isUsable
      this.world.check(hasCause, 'no connection is closed without a cause:', number)
      const wasCancelSent = !mayStillBeCancelled || isBroken || cancellations === 2
      this.world.check(wasCancelSent, 'a server that was silent is told once more to cancel:', number)
      const isCancelled = session.pendingCancels === 0 && cancellations > 0
      this.world.check(!session.isOrphaned || isCancelled, 'what a broken connection leaves is cancelled:', number)
      if (isLate && !isSpoilt) this.#recordBreak()
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

  /** A connection broke. One that no statement tells of says so itself, or its pool does if it is idle. */
  onSessionLost(session: Session, error: Error): void {
    const index = this.#idle.indexOf(session)
    if (index !== -1) this.#idle.splice(index, 1)
    const source: EventEmitter = session.isCheckedOut || index === -1 ? session : this
    const hasListener = !this.sessions.has(session) || source.listenerCount('error') > 0
    this.world.check(hasListener, 'no error of a connection is without a listener:', session.number)
    if (!session.isCheckedOut) this.#removeSession(session)
    if (source.listenerCount('error') > 0) source.emit('error', error)
    this.#serveWaiters()
  }

  /** A statement is about to be sent. */
  onQuery(session: Session, query: Query): TrackedQuery {
    const { now } = this.world.time
    if (isInspection(query)) {
      session.inspectedAt = now
      session.isUsable = false
    } else {
      const isStale = session.inspectedAt < this.#lastBreakAt && this.#lastBreakAt < now
      this.world.check(!isStale, 'no connection is used that is older than a break:', session.number)
      this.world.check(session.isUsable, 'no connection is used that is not fit:', session.number)
    }
    const mayHaveName =
      query.name === undefined ||
      (this.scenario.preparedStatements && now <= this.#namesRejectedAt + 2 * this.scenario.timeoutMs)
    this.world.check(mayHaveName, 'no statement has a name that a pooler forgets:', query.name)
    const trackedQuery = this.cluster.trackQuery(query, this.pendingCalls, this.#hasFoundSchema)
    this.trafficChecker.onQuery(trackedQuery)
    for (const { statements, number } of trackedQuery.writes) {
      const lastStatement = statements.at(-1)
      const firstSentAt = lastStatement?.isConflict === true ? lastStatement.firstSentAt : now
      const isInTime = now - firstSentAt <= this.scenario.timeoutMs
      this.world.check(isInTime, 'no statement is sent again of a call whose time is over:', number)
      statements.push({ trackedQuery, sentAt: now, firstSentAt })
    }
    return trackedQuery
  }

  /** The store hears of a statement. */
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

  /** Whether a write has had no answer since then. */
  hasHangingWrite(sentBefore: number): boolean {
    return [...this.pendingCalls].some(({ statements }) => {
      return statements.some(({ sentAt: beganAt, hasResponse: isAnswered }) => beganAt < sentBefore && !isAnswered)
    })
  }

  /** Whether a write is under way that began by then, sent or not. */
  hasWriteStartedBy(time: number): boolean {
    return [...this.pendingCalls].some(({ kind, startedAt }) => kind !== 'list' && startedAt <= time)
  }

  /** A write that the server has refused each time, or that it never saw, has not been done. */
  checkUnknownOutcome({ statements, number, isUnconfirmed }: Call): void {
    const isKnownUnapplied = statements.every(({ isRejected: isRefused }) => isRefused)
    this.world.check(!isKnownUnapplied, 'what was surely not done is not unknown:', number)
    const isKnownApplied = statements.at(-1)?.isApplied === true && !isUnconfirmed
    this.world.check(!isKnownApplied, 'what the server has said is done is not unknown:', number)
  }
}
