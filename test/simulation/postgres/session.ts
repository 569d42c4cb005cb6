import { EventEmitter } from 'node:events'
import type { Connection, Query, QueryResult } from '../../../src/stores/postgres/pool.ts'
import { INSPECT_TABLE } from '../../../src/stores/postgres/table-inspection.ts'
import { createServerError } from '../../support/database/errors.ts'
import type { Simulation } from '../simulation.ts'
import type { Cluster } from './cluster.ts'
import type { Network } from './network.ts'
import { SERVER_ERRORS, type Scenario, type StatementFault } from './scenario.ts'
import type { TrackedQuery } from './tracked-query.ts'

/** A statement in flight. */
interface Statement {
  readonly trackedQuery: TrackedQuery
  readonly sentAt: number
  readonly resolve: (result: QueryResult) => void
  readonly reject: (error: Error) => void
  /** Whether the server is executing it, waits for its standby, has executed it, or has abandoned it. */
  state: 'running' | 'standby' | 'done' | 'abandoned'
  /** Whether another server has already committed it, so that a cancellation is too late. */
  readonly isCommittedElsewhere: boolean
}

/** What a session needs from its pool. */
interface SessionPool {
  readonly world: Simulation
  readonly network: Network
  readonly cluster: Cluster
  readonly scenario: Scenario
  readonly isClosed: boolean
  onQuery(session: Session, query: Query): TrackedQuery
  onResponse(session: Session, trackedQuery: TrackedQuery, response: QueryResult | Error): void
  onSessionLost(session: Session, error: Error): void
  release(session: Session, error: Error | undefined): void
}

/** A pooled connection and its session on the server. */
export class Session extends EventEmitter implements Connection {
  readonly host = 'postgres.invalid'
  readonly port = 5432
  readonly secretKey = 8
  readonly ssl: boolean
  readonly leader: number
  readonly number: number
  readonly #pool: SessionPool
  isCheckedOut = false
  /** Whether the session still exists on the server. */
  isOpen = true
  /** Whether the client has lost the connection. */
  isBroken = false
  /** Whether an error has shown the store that the connection is unusable. */
  isUnusable = false
  /** Whether the store has read `processID` to cancel the statement, and so no longer waits for its result. */
  isTimedOut = false
  /** When the store last inspected the connection. */
  inspectedAt = -Infinity
  /** Whether the last inspection succeeded. */
  isUsable = false
  statement: Statement | undefined
  /** How often the store has started to cancel the statement. */
  cancelCount = 0
  /** How many of these cancellations are in flight. */
  pendingCancels = 0
  /** When a cancellation without a response started. */
  unansweredCancelAt: number | undefined
  /** Whether the connection broke while the server may have continued the statement. */
  isOrphaned = false
  /** Whether the server has reported that it ended the session. */
  #isEndedByServer = false

  constructor(pool: SessionPool) {
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
    world.check(!this.#isEndedByServer, 'a session that the server has ended is not canceled:', this.number)
    world.check(++this.cancelCount <= 2, 'a statement is canceled at most twice:', this.number)
    const isUnreachable = this.unansweredCancelAt !== undefined && network.unreachableSince <= this.unansweredCancelAt
    world.check(
      !isUnreachable || this.#pool.isClosed,
      'an unresponsive server gets no second cancellation:',
      this.number,
    )
    network.sessionToCancel = this
    this.isTimedOut = true
    return this.#pool.scenario.hidesProcessId ? null : this.number
  }

  query(query: Query): Promise<QueryResult> {
    const { world } = this.#pool
    world.check(this.isCheckedOut, 'only a checked-out connection is used:', this.number)
    world.check(this.statement === undefined, 'a connection runs one statement at a time:', this.number)
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
      'query:',
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
        state: 'running',
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
    const { mayBeApplied, isAmbiguous, isForPreparedStatements } = SERVER_ERRORS[code]!
    if (statement.state !== 'running' || (isForPreparedStatements && statement.trackedQuery.query.name === undefined)) {
      return this.#execute(statement, 1)
    }
    if ((mayBeApplied || isAmbiguous) && isDone) this.#execute(statement, undefined)
    statement.state = 'abandoned'
    if (mayBeApplied) this.isOpen = false
    const error = Object.assign(createServerError(code), code === '0A000' && { routine: 'RevalidateCachedQuery' })
    this.#pool.network.deliver(back, () => this.#respond(statement, error))
  }

  /** @param back the delay of the response; undefined if there is none */
  #execute(statement: Statement, back: number | undefined): void {
    if (statement.state !== 'running' || !this.isOpen) return
    const rejection = this.#pool.cluster.getRejection(statement.trackedQuery, this.leader)
    if (rejection === undefined && this.#pool.cluster.waitsForStandby(statement.trackedQuery, this.leader)) {
      statement.state = 'standby'
      return
    }
    statement.state = 'done'
    const response = rejection ?? this.#pool.cluster.execute(statement.trackedQuery, this.leader)
    if (back !== undefined) this.#pool.network.deliver(back, () => this.#respond(statement, response))
  }

  /** Called when the standby is available again. */
  onStandbyRestored(): void {
    if (this.statement?.state !== 'standby' || this.leader !== this.#pool.cluster.leader) return
    this.statement.state = 'running'
    this.#execute(this.statement, 1)
  }

  /** Called when a cancellation arrives at the server. */
  cancel(requestedAt: number, isForStandby = false): void {
    const { statement } = this
    if (statement === undefined || !this.isOpen) return
    const { world, network } = this.#pool
    world.check(
      statement.sentAt <= requestedAt,
      'a cancellation never affects a later statement of its connection:',
      this.number,
    )
    if (statement.state === 'standby') {
      statement.state = 'done'
      const result = this.#pool.cluster.executeUnconfirmed(statement.trackedQuery, this.leader)
      network.deliver(1, () => {
        const { hidesWarnings, hasForeignTables } = this.#pool.scenario
        const hasWarning =
          !hidesWarnings || hasForeignTables || statement.trackedQuery.query.text.includes('client_min_messages')
        if (hasWarning) this.emit('notice', { routine: 'SyncRepWaitForLSN' })
        this.#respond(statement, result)
      })
    } else if (statement.state === 'running' && !isForStandby) {
      if (statement.isCommittedElsewhere) this.#execute(statement, undefined)
      statement.state = 'abandoned'
      network.deliver(1, () => this.#respond(statement, createServerError('57014')))
    }
  }

  #respond(statement: Statement, response: QueryResult | Error): void {
    if (this.statement !== statement) return
    this.statement = undefined
    this.#pool.world.log(
      'session',
      this.number,
      'response:',
      ...('rows' in response ? [response.rowCount, response.rows] : [response]),
    )
    const { code } = response as { code?: string }
    this.#isEndedByServer ||= !this.isTimedOut && code !== undefined && SERVER_ERRORS[code]!.breaksConnection === true
    // A trigger of the host's database could raise such a notice.
    this.emit('notice', { routine: 'exec_stmt_raise' })
    this.#pool.onResponse(this, statement.trackedQuery, response)
    if (response instanceof Error) statement.reject(response)
    else statement.resolve(response)
  }

  /** Called when the client notices that the connection is lost. */
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

/** Whether a query is the inspection of a new connection. */
export const isInspection = ({ text }: Query): boolean => text === INSPECT_TABLE
