import { metricsOf } from '../../../src/stores/store-metrics.ts'
import { postgresStore, type PostgresStore } from '../../../src/stores/postgres/postgres-store.ts'
import { StoreUnavailableError } from '../../../src/plants/store.ts'
import type { CallTarget } from '../clients.ts'
import type { Call } from '../reference-model.ts'
import type { Pool } from './pool.ts'
import { PERMANENT_ERRORS } from './traffic-checker.ts'

/** Maximum age of the result that a ping reports, and the time after which a pending write makes the store unready. */
const TRUST_MS = 900

/** A store with its pool. Checks the rules for calls and pings. */
export class Program implements CallTarget {
  readonly pool: Pool
  readonly store: PostgresStore
  /** Maximum duration of a call, which may wait for other calls, its own statements, and their cancellation. */
  readonly maxCallMs: number

  constructor(pool: Pool) {
    this.pool = pool
    const { timeoutMs, maxBatch, maxInFlight, preparedStatements } = pool.scenario
    this.maxCallMs = 2.5 * timeoutMs + 10
    const onWarning = (): void => pool.trafficChecker.onWarning()
    this.store = postgresStore(pool, { timeoutMs, maxBatch, maxInFlight, preparedStatements, onWarning })
    metricsOf(this.store).onBatch = () => pool.cluster.batchTimes.push(pool.world.time.now)
  }

  close(): void {
    this.pool.isClosed = true
    void this.store[Symbol.asyncDispose]()
  }

  onCallStart(call: Call): void {
    const { world, pendingCalls } = this.pool
    pendingCalls.add(call)
    world.time.schedule(this.maxCallMs, () =>
      world.check(!pendingCalls.has(call), 'a call settles in time:', call.number),
    )
  }

  isExpectedError(error: unknown): boolean {
    return PERMANENT_ERRORS.has((error as { code?: string }).code)
  }

  onCallEnd(call: Call, error?: unknown): void {
    this.pool.pendingCalls.delete(call)
    this.pool.trafficChecker.onCallEnd(call, error)
    if (call.outcome === 'unknown') this.pool.checkUnknownOutcome(call)
  }

  migrate(): void {
    const { world, cluster } = this.pool
    this.store.migrate().then(
      () => world.check(cluster.hasTable, 'the table exists after migrate()'),
      (error: unknown) => {
        world.log('migrate:', error)
        world.check(error instanceof StoreUnavailableError, 'migrate() succeeds or fails temporarily:', error)
      },
    )
  }

  /** Pings the store and checks that the result is correct. */
  ping(): void {
    const { pool } = this
    const { world, cluster, scenario, hasSeenCreateFailure: hadCreateFailure } = pool
    const startedAt = world.time.now
    const hasHangingWrite = pool.hasHangingWrite(startedAt - TRUST_MS)
    const wasHealthy = cluster.isHealthySince(startedAt - TRUST_MS - 2.5 * scenario.timeoutMs)
    let isSettled = false
    const checkProbed = pool.trafficChecker.onPing()
    const mayReportHangingWrite = pool.trafficChecker.mayProbe || pool.hasWriteStartedBy(startedAt - TRUST_MS)
    // After a probe that the table rejects, a ping may send two statements that write nothing.
    world.time.schedule(4 * scenario.timeoutMs, () => world.check(isSettled, 'a ping settles'))
    this.store.ping().then(
      () => {
        isSettled = true
        world.log('ping: ready')
        checkProbed()
        world.check(!hasHangingWrite, 'a store with a hanging write is not ready')
        const hasCreateFailures =
          cluster.rejectsCreates &&
          cluster.rejectsCreatesSince < startedAt - TRUST_MS &&
          hadCreateFailure &&
          pool.hasSeenCreateFailure
        world.check(!hasCreateFailures, 'a store whose creates fail is not ready')
      },
      (error: unknown) => {
        isSettled = true
        world.log('ping: not ready', error)
        world.check((error as Error).message !== '', 'a failed ping has a message')
        const reportsHangingWrite = String(error).includes('A write has been waiting for a response')
        world.check(
          mayReportHangingWrite || !reportsHangingWrite,
          'a ping reports a hanging write only if there is one',
        )
        const isHealthy = wasHealthy && cluster.isHealthySince(startedAt) && !pool.hasWaiters
        world.check(!isHealthy, 'a store is ready while there are no faults')
      },
    )
  }
}
