import { EventEmitter } from 'node:events'
import type { ConnectionPool, Query, QueryResult } from '../../../src/stores/postgres/pool.ts'
import type { Look } from '../../../src/stores/postgres/statements.ts'
import { serverError } from '../../support/database/failures.ts'
import type { World } from '../simulation.ts'
import type { Call } from '../truth.ts'
import type { Network } from './network.ts'
import { REFUSALS, WRITE_FAILURES, type Arrival, type Scenario } from './scenario.ts'
import type { Asked, Cluster } from './server.ts'
import { isLook, Session } from './session.ts'
import { isTry, Thrift } from './thrift.ts'

interface Waiter {
  readonly lend: (session: Session) => void
  readonly fail: (error: Error) => void
  isOver: boolean
}

const AS_PEER: Arrival = { kind: 'slow', ms: 1 }

/** A pool as `pg` has it, which sees that its store keeps to the rules of connections. */
export class Pool extends EventEmitter implements ConnectionPool {
  readonly world: World
  readonly network: Network
  readonly cluster: Cluster
  readonly scenario: Scenario
  readonly sessions = new Set<Session>()
  readonly thrift = new Thrift(this)
  /** The calls of the store that are under way. */
  readonly calls = new Set<Call>()
  /** Whether a create has failed as all do for a while, and none has succeeded since. */
  hasMetFull = false
  /** How often it was asked for a connection. */
  asked = 0
  /** Whether its store is closed. */
  isClosed = false
  /** Whether it has lent a connection that was fit for use: then the store knows where to ask for the server. */
  hasServed = false
  readonly #idle: Session[] = []
  readonly #waiting: Waiter[] = []
  #size = 0
  /** When a connection broke last: surely, so that older ones must be closed, or perhaps, so that they may be. */
  #brokeAt = -Infinity
  #mayHaveBrokenAt = -Infinity
  /** When the pooler first told that it keeps no names. Statements that were under way may have one yet. */
  #namesEndedAt = Infinity
  /** Whether the pooler has told that, also to a store that does not listen any more. */
  hasRefusedName = false
  #knowsSchema = false

  constructor(cluster: Cluster, network: Network, scenario: Scenario) {
    super()
    this.world = network.world
    this.network = network
    this.cluster = cluster
    this.scenario = scenario
  }

  /** Whether somebody waits for a connection. */
  get isBusy(): boolean {
    return this.#waiting.length > 0
  }

  connect(): Promise<Session> {
    this.asked++
    return new Promise((lend, fail) => {
      const waiter: Waiter = { lend, fail, isOver: false }
      this.#waiting.push(waiter)
      const { poolTimeoutMs } = this.scenario
      if (poolTimeoutMs > 0) {
        const error = new Error('timeout exceeded when trying to connect')
        this.world.time.after(poolTimeoutMs, () => {
          if (!waiter.isOver) this.cluster.trouble(0)
          this.#fail(waiter, error)
        })
      }
      this.#serve()
    })
  }

  #serve(): void {
    while (this.#waiting.length > 0) {
      const idle = this.#idle.shift()
      if (idle !== undefined) this.#lend(this.#waiting.shift()!, idle)
      else if (this.#size < this.scenario.poolSize) this.#open(this.#waiting.shift()!)
      else return
    }
  }

  #open(waiter: Waiter): void {
    this.#size++
    const { kind, ms } = this.network.nextArrival() ?? AS_PEER
    this.cluster.trouble(kind === 'mute' ? 10_000 : ms)
    const fail = (error: Error): void => {
      this.#size--
      this.#fail(waiter, error)
      this.#serve()
    }
    // The kernel gives up some time.
    if (kind === 'mute') return void this.world.time.after(10_000, () => fail(new Error('connect ETIMEDOUT')))
    this.network.deliver(ms, () => {
      if (kind === 'refused') return fail(new Error('connect ECONNREFUSED'))
      if (kind === 'full') return fail(serverError('53300'))
      const session = new Session(this)
      this.sessions.add(session)
      this.emit('connect', session)
      if (kind === 'dies') {
        session.isOpen = false
        session.breakUp(serverError('57P01'))
        this.#fail(waiter, serverError('57P01'))
      } else if (waiter.isOver) {
        this.#idle.push(session)
        this.#serve()
      } else this.#lend(waiter, session)
    })
  }

  #lend(waiter: Waiter, session: Session): void {
    waiter.isOver = true
    session.isLent = true
    session.isLate = false
    waiter.lend(session)
  }

  #fail(waiter: Waiter, error: Error): void {
    if (waiter.isOver) return
    waiter.isOver = true
    const place = this.#waiting.indexOf(waiter)
    if (place !== -1) this.#waiting.splice(place, 1)
    waiter.fail(error)
  }

  /** A connection comes back. */
  takeBack(session: Session, error: Error | undefined): void {
    const { number, statement, isLate, isBroken, isSpoilt, lookedAt, cancellations } = session
    this.world.tell('session', number, 'comes back', ...(error === undefined ? [] : ['to be closed:', error]))
    this.world.expect(session.isLent, 'no connection is given back twice:', number)
    const isUnheard = session.unheardAt !== undefined
    session.isLent = false
    if (error === undefined) {
      this.world.expect(statement === undefined, 'no connection is given back while its statement runs:', number)
      this.world.expect(!isSpoilt, 'no connection is given back that broke:', number)
      this.world.expect(!isUnheard, 'no connection is given back that a cancellation may still hit:', number)
    } else if (error.message === 'Another connection has broken.') {
      // The store may learn late that one broke whose statement was late.
      const isPending = [...this.sessions].some((other) => other.isLent && other.isLate && other.isSpoilt)
      const isDue = isPending || lookedAt <= Math.max(this.#mayHaveBrokenAt, this.network.gaveUpAt)
      this.world.expect(isDue, 'no sound connection is closed:', number)
    } else {
      const isStuck = isLate && (statement !== undefined || isUnheard)
      const hasCause = isStuck || isBroken || isSpoilt || !session.isFit
      this.world.expect(hasCause, 'no connection is closed without a cause:', number)
      const wasTold = !isUnheard || isBroken || cancellations === 2
      this.world.expect(wasTold, 'a server that was silent is told once more to cancel:', number)
      const isCancelled = session.cancelling === 0 && cancellations > 0
      this.world.expect(!session.isLeftBehind || isCancelled, 'what a broken connection leaves is cancelled:', number)
      if (isLate && !isSpoilt) this.#noteBreak()
    }
    if (error !== undefined) this.#mayHaveBrokenAt = this.world.time.now
    if (error !== undefined || isBroken) this.#remove(session)
    else this.#idle.push(session)
    this.#serve()
  }

  #noteBreak(): void {
    this.#brokeAt = this.#mayHaveBrokenAt = this.world.time.now
  }

  #remove(session: Session): void {
    if (!this.sessions.delete(session)) return
    this.#size--
    this.network.deliver(0, () => session.breakUp(new Error('Connection terminated')))
  }

  /** A connection broke. One that no statement tells of says so itself, or its pool does if it is idle. */
  lose(session: Session, error: Error): void {
    const place = this.#idle.indexOf(session)
    if (place !== -1) this.#idle.splice(place, 1)
    const source: EventEmitter = session.isLent || place === -1 ? session : this
    const isHeard = !this.sessions.has(session) || source.listenerCount('error') > 0
    this.world.expect(isHeard, 'no error of a connection is without a listener:', session.number)
    if (!session.isLent) this.#remove(session)
    if (source.listenerCount('error') > 0) source.emit('error', error)
    this.#serve()
  }

  /** A statement is about to be sent. */
  ask(session: Session, query: Query): Asked {
    const { now } = this.world.time
    if (isLook(query)) {
      session.lookedAt = now
      session.isFit = false
    } else {
      const isOld = session.lookedAt < this.#brokeAt && this.#brokeAt < now
      this.world.expect(!isOld, 'no connection is used that is older than a break:', session.number)
      this.world.expect(session.isFit, 'no connection is used that is not fit:', session.number)
    }
    const mayHaveName =
      query.name === undefined ||
      (this.scenario.preparedStatements && now <= this.#namesEndedAt + 2 * this.scenario.timeoutMs)
    this.world.expect(mayHaveName, 'no statement has a name that a pooler forgets:', query.name)
    const asked = this.cluster.ask(query, this.calls, this.#knowsSchema)
    this.thrift.asked(asked)
    for (const { statements, number } of asked.writes) {
      const last = statements.at(-1)
      const firstAt = last?.isConflict === true ? last.firstAt : now
      const isInTime = now - firstAt <= this.scenario.timeoutMs
      this.world.expect(isInTime, 'no statement is sent again of a call whose time is over:', number)
      statements.push({ asked, beganAt: now, firstAt })
    }
    return asked
  }

  /** The store hears of a statement. */
  hear(session: Session, asked: Asked, answer: QueryResult | Error): void {
    const { query, writes } = asked
    const { now } = this.world.time
    const { code } = answer as { code?: string }
    const breaks = answer instanceof Error && (code === undefined || REFUSALS[code]?.breaks === true)
    if (isLook(query)) {
      const look = 'rows' in answer ? (JSON.parse(answer.rows[0]![0] as string) as Look) : undefined
      const isSuitable = look?.serverEncoding === 'UTF8' && look.clientEncoding === 'UTF8' && look.problems === ''
      session.isFit = isSuitable && !look.isReadOnly && look.outdated === null
      this.hasServed ||= session.isFit && !session.isLate && session.isLent
      this.#knowsSchema ||= session.isFit && look?.schema === 'public'
      if (look !== undefined && !look.isReadOnly && !isSuitable) this.#noteBreak()
    } else if (breaks) {
      if (session.isLate) this.#mayHaveBrokenAt = now
      else this.#noteBreak()
    }
    session.isSpoilt ||= breaks
    session.isLeftBehind ||= breaks && code === undefined && !isLook(query)
    for (const statement of writes.flatMap(({ statements }) => statements)) {
      if (statement.asked !== asked) continue
      statement.isAnswered = true
      statement.isConflict = code === '40001' || code === '40P01'
      const { mayBeDone, isUnsure } = code === undefined ? { mayBeDone: true } : REFUSALS[code]!
      statement.isDone = !session.isLate && 'rows' in answer
      statement.isRefused =
        !session.isLate && mayBeDone !== true && isUnsure !== true && !(code === '57014' && this.cluster.isForeign)
    }
    if (!session.isLate) this.thrift.heard(asked, answer)
    if (isTry(query) && 'rows' in answer) this.hasMetFull = false
    if (!session.isLate && writes.some(({ name }) => name !== undefined)) {
      if (WRITE_FAILURES.some((failure) => failure === code)) this.hasMetFull = true
      else if ('rowCount' in answer && answer.rowCount! > 0) this.hasMetFull = false
    }
    if (code === '26000' || code === '42P05') {
      this.hasRefusedName = true
      if (!session.isLate) this.#namesEndedAt = Math.min(this.#namesEndedAt, now)
    }
  }

  /** Whether a write has had no answer since then. */
  hasHangingWrite(since: number): boolean {
    return [...this.calls].some(({ statements }) => {
      return statements.some(({ beganAt, isAnswered }) => beganAt < since && !isAnswered)
    })
  }

  /** Whether a write is under way that began by then, sent or not. */
  hasWriteSince(time: number): boolean {
    return [...this.calls].some(({ kind, startedAt }) => kind !== 'list' && startedAt <= time)
  }

  /** A write that the server has refused each time, or that it never saw, has not been done. */
  seeThatUnknown({ statements, number, isUnconfirmed }: Call): void {
    const isSure = statements.every(({ isRefused }) => isRefused)
    this.world.expect(!isSure, 'what was surely not done is not unknown:', number)
    const isDone = statements.at(-1)?.isDone === true && !isUnconfirmed
    this.world.expect(!isDone, 'what the server has said is done is not unknown:', number)
  }
}
