import { metricsOf } from '../../../src/stores/store-metrics.ts'
import { postgresStore, type PostgresStore } from '../../../src/stores/postgres/postgres-store.ts'
import { StoreUnavailableError } from '../../../src/plants/store.ts'
import type { CallTarget } from '../clients.ts'
import type { Call } from '../reference-model.ts'
import type { Pool } from './pool.ts'
import { PERMANENT_ERRORS } from './traffic-checker.ts'

/** How long what a ping says may be old, and how long a write may take until the store is not ready. */
const TRUST_MS = 900

/** A store and its pool, with the rules for calls and pings. */
export class Program implements CallTarget {
  readonly pool: Pool
  readonly store: PostgresStore
  /** How long any call may take: it may wait for others, then for its statements, and then for their cancellation. */
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
    const { world, pendingCalls: calls } = this.pool
    calls.add(call)
    world.time.schedule(this.maxCallMs, () => world.check(!calls.has(call), 'each call ends in its time:', call.number))
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
      () => world.check(cluster.hasTable, 'there is a table after migrate'),
      (error: unknown) => {
        world.log('migrate:', error)
        world.check(error instanceof StoreUnavailableError, 'migrate makes its table, or may later:', error)
      },
    )
  }

  /** Pings, and sees that what is said is so. */
  ping(): void {
    const { pool } = this
    const { world, cluster, scenario, hasSeenCreateFailure: hasMetFull } = pool
    const startedAt = world.time.now
    const hasHangingWrite = pool.hasHangingWrite(startedAt - TRUST_MS)
    const wasHealthy = cluster.isHealthySince(startedAt - TRUST_MS - 2.5 * scenario.timeoutMs)
    let isSettled = false
    const checkProbed = pool.trafficChecker.onPing()
    const mayReportHangingWrite = pool.trafficChecker.mayProbe || pool.hasWriteStartedBy(startedAt - TRUST_MS)
    // It may send two statements that write nothing, after a write that the table refuses.
    world.time.schedule(4 * scenario.timeoutMs, () => world.check(isSettled, 'each ping ends'))
    this.store.ping().then(
      () => {
        isSettled = true
        world.log('ping: ready')
        checkProbed()
        world.check(!hasHangingWrite, 'a store is not ready whose write hangs')
        const hasCreateFailures =
          cluster.rejectsCreates &&
          cluster.rejectsCreatesSince < startedAt - TRUST_MS &&
          hasMetFull &&
          pool.hasSeenCreateFailure
        world.check(!hasCreateFailures, 'a store is not ready whose creates fail')
      },
      (error: unknown) => {
        isSettled = true
        world.log('ping: not ready', error)
        world.check((error as Error).message !== '', 'a ping that fails says why')
        const reportsHangingWrite = String(error).includes('A write has been waiting for a response')
        world.check(mayReportHangingWrite || !reportsHangingWrite, 'no write is said to hang that does not')
        const isHealthy = wasHealthy && cluster.isHealthySince(startedAt) && !pool.hasWaiters
        world.check(!isHealthy, 'a store is ready while all is well')
      },
    )
  }
}
