import { EventEmitter } from 'node:events'
import type { Connection, Query, QueryResult } from '../../../src/stores/postgres/pool.ts'
import { INSPECT_TABLE } from '../../../src/stores/postgres/table-inspection.ts'
import { createServerError } from '../../support/database/errors.ts'
import type { Pool } from './pool.ts'
import { SERVER_ERRORS, type StatementFault } from './scenario.ts'
import type { TrackedQuery } from './cluster.ts'

/** A statement on its way. */
interface Statement {
  readonly trackedQuery: TrackedQuery
  readonly sentAt: number
  readonly resolve: (result: QueryResult) => void
  readonly reject: (error: Error) => void
  /** Where it is: the server works on it, waits for its standby, is done, or does no more about it. */
  state: 'works' | 'standby' | 'done' | 'over'
  /** Whether a cancellation is too late for another server, which has committed it. */
  readonly isCommittedElsewhere: boolean
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
  isCheckedOut = false
  /** Whether the server has it still, and whether the client has. */
  isOpen = true
  isBroken = false
  /** Whether a statement has told the store that it is of no use any more. */
  isUnusable = false
  /** Whether it was asked how to cancel the statement, so that nobody waits for that any more. */
  isTimedOut = false
  /** When it was asked last whether it is fit for use, and what it said. */
  inspectedAt = -Infinity
  isUsable = false
  statement: Statement | undefined
  /** How often the store has begun to cancel the statement, and how many of these are under way. */
  cancelCount = 0
  pendingCancels = 0
  /** When one began that had no answer. */
  unansweredCancelAt: number | undefined
  /** Whether the connection broke while the server may have gone on with the statement. */
  isOrphaned = false
  /** Whether the server has said that the session is over. */
  #isEndedByServer = false

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
    world.check(!this.#isEndedByServer, 'nothing is cancelled in a session that its server has ended:', this.number)
    world.check(++this.cancelCount <= 2, 'no statement is cancelled for ever:', this.number)
    const isUnreachable = this.unansweredCancelAt !== undefined && network.unreachableSince <= this.unansweredCancelAt
    world.check(!isUnreachable || this.#pool.isClosed, 'a silent server is not told again:', this.number)
    network.sessionToCancel = this
    this.isTimedOut = true
    return this.#pool.scenario.hidesProcessId ? null : this.number
  }

  query(query: Query): Promise<QueryResult> {
    const { world } = this.#pool
    world.check(this.isCheckedOut, 'only a connection that is lent is used:', this.number)
    world.check(this.statement === undefined, 'no connection gets two statements at once:', this.number)
    this.isTimedOut = false
    this.unansweredCancelAt = undefined
    this.cancelCount = 0
    const trackedQuery = this.#pool.onQuery(this, query)
    const { network, scenario } = this.#pool
    const injectedFault = isInspection(query) ? network.nextInspectionFault() : network.nextStatementFault()
    const fault: StatementFault = injectedFault ?? {
      kind: 'slow',
      work: world.isFaultFree ? 1 : scenario.statementMs,
      back: 1,
    }
    if (injectedFault !== undefined)
      this.#pool.cluster.recordFault(('work' in fault ? fault.work : 0) + ('back' in fault ? fault.back : 0))
    world.log(
      'session',
      this.number,
      'is asked:',
      query.name ?? query.text.trim().split('\n')[0],
      [...query.values],
      fault,
    )
    return new Promise((resolve, reject) => {
      const isCommittedElsewhere = fault.kind === 'lock' && fault.isDone && this.#pool.cluster.hasForeignTables
      const statement: Statement = {
        trackedQuery,
        sentAt: world.time.now,
        resolve,
        reject,
        state: 'works',
        isCommittedElsewhere,
      }
      this.statement = statement
      if (this.isBroken) this.#respond(statement, new Error('Client has encountered a connection error'))
      else this.#injectFault(statement, fault)
    })
  }

  release(error?: Error): void {
    this.#pool.release(this, error)
  }

  #injectFault(statement: Statement, fault: StatementFault): void {
    const { network } = this.#pool
    switch (fault.kind) {
      case 'slow':
        return network.deliver(fault.work, () => this.#execute(statement, fault.back))
      case 'lock':
        return network.deliver(1, () => this.#pool.world.time.schedule(fault.work, () => this.#execute(statement, 1)))
      case 'break':
        network.deliver(fault.work, () => this.#execute(statement, 0))
        return network.deliver(fault.back, () => this.breakConnection())
      case 'refuse':
        return network.deliver(1, () => this.#reject(statement, fault))
    }
  }

  #reject(statement: Statement, { code, isDone, back }: Extract<StatementFault, { kind: 'refuse' }>): void {
    const { mayBeApplied: mayBeDone, isAmbiguous: isUnsure, isForPreparedStatements: isForNames } = SERVER_ERRORS[code]!
    if (statement.state !== 'works' || (isForNames && statement.trackedQuery.query.name === undefined)) {
      return this.#execute(statement, 1)
    }
    if ((mayBeDone || isUnsure) && isDone) this.#execute(statement, undefined)
    statement.state = 'over'
    if (mayBeDone) this.isOpen = false
    const error = Object.assign(createServerError(code), code === '0A000' && { routine: 'RevalidateCachedQuery' })
    this.#pool.network.deliver(back, () => this.#respond(statement, error))
  }

  /** @param back how long the answer takes; undefined if there will be none */
  #execute(statement: Statement, back: number | undefined): void {
    if (statement.state !== 'works' || !this.isOpen) return
    const rejection = this.#pool.cluster.getRejection(statement.trackedQuery, this.leader)
    if (rejection === undefined && this.#pool.cluster.waitsForStandby(statement.trackedQuery, this.leader)) {
      statement.state = 'standby'
      return
    }
    statement.state = 'done'
    const response = rejection ?? this.#pool.cluster.execute(statement.trackedQuery, this.leader)
    if (back !== undefined) this.#pool.network.deliver(back, () => this.#respond(statement, response))
  }

  /** The standby is back. */
  onStandbyRestored(): void {
    if (this.statement?.state !== 'standby' || this.leader !== this.#pool.cluster.leader) return
    this.statement.state = 'works'
    this.#execute(this.statement, 1)
  }

  /** A cancellation has come. */
  cancel(requestedAt: number, isForStandby = false): void {
    const { statement } = this
    if (statement === undefined || !this.isOpen) return
    const { world, network } = this.#pool
    world.check(
      statement.sentAt <= requestedAt,
      'no cancellation hits a later statement of its connection:',
      this.number,
    )
    if (statement.state === 'standby') {
      statement.state = 'done'
      const result = this.#pool.cluster.executeUnconfirmed(statement.trackedQuery, this.leader)
      network.deliver(1, () => {
        const { hidesWarnings, hasForeignTables: isForeign } = this.#pool.scenario
        const hasWarning =
          !hidesWarnings || isForeign || statement.trackedQuery.query.text.includes('client_min_messages')
        if (hasWarning) this.emit('notice', { routine: 'SyncRepWaitForLSN' })
        this.#respond(statement, result)
      })
    } else if (statement.state === 'works' && !isForStandby) {
      if (statement.isCommittedElsewhere) this.#execute(statement, undefined)
      statement.state = 'over'
      network.deliver(1, () => this.#respond(statement, createServerError('57014')))
    }
  }

  #respond(statement: Statement, response: QueryResult | Error): void {
    if (this.statement !== statement) return
    this.statement = undefined
    this.#pool.world.log(
      'session',
      this.number,
      'says:',
      ...('rows' in response ? [response.rowCount, response.rows] : [response]),
    )
    const { code } = response as { code?: string }
    this.#isEndedByServer ||= !this.isTimedOut && code !== undefined && SERVER_ERRORS[code]!.breaksConnection === true
    // As a trigger of the host may do.
    this.emit('notice', { routine: 'exec_stmt_raise' })
    this.#pool.onResponse(this, statement.trackedQuery, response)
    if (response instanceof Error) statement.reject(response)
    else statement.resolve(response)
  }

  /** The client learns that the connection is gone. */
  breakConnection(error: Error = new Error('Connection terminated unexpectedly')): void {
    if (this.isBroken) return
    this.isBroken = true
    if (this.statement !== undefined) this.#respond(this.statement, error)
    this.#pool.onSessionLost(this, error)
  }

  /** The server ends the session. */
  terminate(): void {
    if (!this.isOpen) return
    this.isOpen = false
    this.#pool.network.deliver(1, () => this.breakConnection(createServerError('57P01')))
  }
}

/** Whether a query asks what a new connection is asked. */
export const isInspection = ({ text }: Query): boolean => text === INSPECT_TABLE
