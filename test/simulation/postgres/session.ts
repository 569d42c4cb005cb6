import { EventEmitter } from 'node:events'
import type { Connection, Query, QueryResult } from '../../../src/stores/postgres/pool.ts'
import { LOOK } from '../../../src/stores/postgres/statements.ts'
import { serverError } from '../../support/database/failures.ts'
import type { Pool } from './pool.ts'
import { REFUSALS, type Fate } from './scenario.ts'
import type { Asked } from './server.ts'

/** A statement on its way. */
interface Statement {
  readonly asked: Asked
  readonly beganAt: number
  readonly resolve: (result: QueryResult) => void
  readonly reject: (error: Error) => void
  /** Where it is: the server works on it, waits for its standby, is done, or does no more about it. */
  state: 'works' | 'standby' | 'done' | 'over'
  /** Whether a cancellation is too late for another server, which has committed it. */
  readonly isDoneElsewhere: boolean
}

/** A connection of a pool, and the session of the server behind it. */
export class Session extends EventEmitter implements Connection {
  readonly host = 'postgres.invalid'
  readonly port = 5432
  readonly secretKey = 8
  readonly ssl: boolean
  readonly leader: number
  readonly number: number
  readonly #pool: Pool
  isLent = false
  /** Whether the server has it still, and whether the client has. */
  isOpen = true
  isBroken = false
  /** Whether a statement has told the store that it is of no use any more. */
  isSpoilt = false
  /** Whether it was asked how to cancel the statement, so that nobody waits for that any more. */
  isLate = false
  /** When it was asked last whether it is fit for use, and what it said. */
  lookedAt = -Infinity
  isFit = false
  statement: Statement | undefined
  /** How often the store has begun to cancel the statement, and how many of these are under way. */
  cancellations = 0
  cancelling = 0
  /** When one began that had no answer. */
  unheardAt: number | undefined
  /** Whether the connection broke while the server may have gone on with the statement. */
  isLeftBehind = false
  /** Whether the server has said that the session is over. */
  #isOver = false

  constructor(pool: Pool) {
    super()
    const { cluster, scenario } = pool
    this.#pool = pool
    this.leader = cluster.leader
    this.number = pool.network.sessions.size + 1
    this.ssl = scenario.ssl
    pool.network.sessions.set(this.number, this)
  }

  get processID(): number | null {
    const { world, network } = this.#pool
    world.expect(!this.#isOver, 'nothing is cancelled in a session that its server has ended:', this.number)
    world.expect(++this.cancellations <= 2, 'no statement is cancelled for ever:', this.number)
    const isSilent = this.unheardAt !== undefined && network.silentSince <= this.unheardAt
    world.expect(!isSilent || this.#pool.isClosed, 'a silent server is not told again:', this.number)
    network.asking = this
    this.isLate = true
    return this.#pool.scenario.hidesProcess ? null : this.number
  }

  query(query: Query): Promise<QueryResult> {
    const { world } = this.#pool
    world.expect(this.isLent, 'only a connection that is lent is used:', this.number)
    world.expect(this.statement === undefined, 'no connection gets two statements at once:', this.number)
    this.isLate = false
    this.unheardAt = undefined
    this.cancellations = 0
    const asked = this.#pool.ask(this, query)
    const { network, scenario } = this.#pool
    const bad = isLook(query) ? network.nextLook() : network.nextFate()
    const fate: Fate = bad ?? { kind: 'slow', work: world.isWell ? 1 : scenario.paceMs, back: 1 }
    if (bad !== undefined)
      this.#pool.cluster.trouble(('work' in fate ? fate.work : 0) + ('back' in fate ? fate.back : 0))
    world.tell(
      'session',
      this.number,
      'is asked:',
      query.name ?? query.text.trim().split('\n')[0],
      [...query.values],
      fate,
    )
    return new Promise((resolve, reject) => {
      const isDoneElsewhere = fate.kind === 'lock' && fate.isDone && this.#pool.cluster.isForeign
      const statement: Statement = { asked, beganAt: world.time.now, resolve, reject, state: 'works', isDoneElsewhere }
      this.statement = statement
      if (this.isBroken) this.#answer(statement, new Error('Client has encountered a connection error'))
      else this.#befall(statement, fate)
    })
  }

  release(error?: Error): void {
    this.#pool.takeBack(this, error)
  }

  #befall(statement: Statement, fate: Fate): void {
    const { network } = this.#pool
    switch (fate.kind) {
      case 'slow':
        return network.deliver(fate.work, () => this.#run(statement, fate.back))
      case 'lock':
        return network.deliver(1, () => this.#pool.world.time.after(fate.work, () => this.#run(statement, 1)))
      case 'break':
        network.deliver(fate.work, () => this.#run(statement, 0))
        return network.deliver(fate.back, () => this.breakUp())
      case 'refuse':
        return network.deliver(1, () => this.#refuse(statement, fate))
    }
  }

  #refuse(statement: Statement, { code, isDone, back }: Extract<Fate, { kind: 'refuse' }>): void {
    const { mayBeDone, isUnsure, isForNames } = REFUSALS[code]!
    if (statement.state !== 'works' || (isForNames && statement.asked.query.name === undefined)) {
      return this.#run(statement, 1)
    }
    if ((mayBeDone || isUnsure) && isDone) this.#run(statement, undefined)
    statement.state = 'over'
    if (mayBeDone) this.isOpen = false
    const error = Object.assign(serverError(code), code === '0A000' && { routine: 'RevalidateCachedQuery' })
    this.#pool.network.deliver(back, () => this.#answer(statement, error))
  }

  /** @param back how long the answer takes; undefined if there will be none */
  #run(statement: Statement, back: number | undefined): void {
    if (statement.state !== 'works' || !this.isOpen) return
    const refusal = this.#pool.cluster.refusal(statement.asked, this.leader)
    if (refusal === undefined && this.#pool.cluster.waitsForStandby(statement.asked, this.leader)) {
      statement.state = 'standby'
      return
    }
    statement.state = 'done'
    const answer = refusal ?? this.#pool.cluster.run(statement.asked, this.leader)
    if (back !== undefined) this.#pool.network.deliver(back, () => this.#answer(statement, answer))
  }

  /** The standby is back. */
  goOn(): void {
    if (this.statement?.state !== 'standby' || this.leader !== this.#pool.cluster.leader) return
    this.statement.state = 'works'
    this.#run(this.statement, 1)
  }

  /** A cancellation has come. */
  cancel(askedAt: number, isForStandby = false): void {
    const { statement } = this
    if (statement === undefined || !this.isOpen) return
    const { world, network } = this.#pool
    world.expect(statement.beganAt <= askedAt, 'no cancellation hits a later statement of its connection:', this.number)
    if (statement.state === 'standby') {
      statement.state = 'done'
      const result = this.#pool.cluster.runUnconfirmed(statement.asked, this.leader)
      network.deliver(1, () => {
        const { hidesWarnings, isForeign } = this.#pool.scenario
        const isWarned = !hidesWarnings || isForeign || statement.asked.query.text.includes('client_min_messages')
        if (isWarned) this.emit('notice', { routine: 'SyncRepWaitForLSN' })
        this.#answer(statement, result)
      })
    } else if (statement.state === 'works' && !isForStandby) {
      if (statement.isDoneElsewhere) this.#run(statement, undefined)
      statement.state = 'over'
      network.deliver(1, () => this.#answer(statement, serverError('57014')))
    }
  }

  #answer(statement: Statement, answer: QueryResult | Error): void {
    if (this.statement !== statement) return
    this.statement = undefined
    this.#pool.world.tell(
      'session',
      this.number,
      'says:',
      ...('rows' in answer ? [answer.rowCount, answer.rows] : [answer]),
    )
    const { code } = answer as { code?: string }
    this.#isOver ||= !this.isLate && code !== undefined && REFUSALS[code]!.breaks === true
    // As a trigger of the host may do.
    this.emit('notice', { routine: 'exec_stmt_raise' })
    this.#pool.hear(this, statement.asked, answer)
    if (answer instanceof Error) statement.reject(answer)
    else statement.resolve(answer)
  }

  /** The client learns that the connection is gone. */
  breakUp(error: Error = new Error('Connection terminated unexpectedly')): void {
    if (this.isBroken) return
    this.isBroken = true
    if (this.statement !== undefined) this.#answer(this.statement, error)
    this.#pool.lose(this, error)
  }

  /** The server ends the session. */
  terminate(): void {
    if (!this.isOpen) return
    this.isOpen = false
    this.#pool.network.deliver(1, () => this.breakUp(serverError('57P01')))
  }
}

/** Whether a query asks what a new connection is asked. */
export const isLook = ({ text }: Query): boolean => text === LOOK.text
