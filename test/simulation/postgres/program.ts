import { figuresOf } from '../../../src/stores/figures.ts'
import { postgresStore, type PostgresStore } from '../../../src/stores/postgres/postgres-store.ts'
import { StoreUnavailableError } from '../../../src/plants/store.ts'
import type { Target } from '../clients.ts'
import type { Call } from '../truth.ts'
import type { Pool } from './pool.ts'
import { LASTING } from './thrift.ts'

/** How long what a ping says may be old, and how long a write may take until the store is not ready. */
const TRUST_MS = 900

/** A store and its pool, with the rules for calls and pings. */
export class Program implements Target {
  readonly pool: Pool
  readonly store: PostgresStore
  /** How long any call may take: it may wait for others, then for its statements, and then for their cancellation. */
  readonly longestMs: number

  constructor(pool: Pool) {
    this.pool = pool
    const { timeoutMs, maxBatch, maxInFlight, preparedStatements } = pool.scenario
    this.longestMs = 2.5 * timeoutMs + 10
    const onWarning = (): void => pool.thrift.warned()
    this.store = postgresStore(pool, { timeoutMs, maxBatch, maxInFlight, preparedStatements, onWarning })
    figuresOf(this.store).onBatch = () => pool.cluster.groupedAt.push(pool.world.time.now)
  }

  close(): void {
    this.pool.isClosed = true
    void this.store[Symbol.asyncDispose]()
  }

  began(call: Call): void {
    const { world, calls } = this.pool
    calls.add(call)
    world.time.after(this.longestMs, () => world.expect(!calls.has(call), 'each call ends in its time:', call.number))
  }

  mayFail(error: unknown): boolean {
    return LASTING.has((error as { code?: string }).code)
  }

  ended(call: Call, error?: unknown): void {
    this.pool.calls.delete(call)
    this.pool.thrift.ended(call, error)
    if (call.outcome === 'unknown') this.pool.seeThatUnknown(call)
  }

  migrate(): void {
    const { world, cluster } = this.pool
    this.store.migrate().then(
      () => world.expect(cluster.hasTable, 'there is a table after migrate'),
      (error: unknown) => {
        world.tell('migrate:', error)
        world.expect(error instanceof StoreUnavailableError, 'migrate makes its table, or may later:', error)
      },
    )
  }

  /** Pings, and sees that what is said is so. */
  ping(): void {
    const { pool } = this
    const { world, cluster, scenario, hasMetFull } = pool
    const startedAt = world.time.now
    const hangs = pool.hasHangingWrite(startedAt - TRUST_MS)
    const isWell = cluster.isWellSince(startedAt - TRUST_MS - 2.5 * scenario.timeoutMs)
    let isSettled = false
    const seeThatTried = pool.thrift.pinged()
    const mayHang = pool.thrift.mayTry || pool.hasWriteSince(startedAt - TRUST_MS)
    // It may send two statements that write nothing, after a write that the table refuses.
    world.time.after(4 * scenario.timeoutMs, () => world.expect(isSettled, 'each ping ends'))
    this.store.ping().then(
      () => {
        isSettled = true
        world.tell('ping: ready')
        seeThatTried()
        world.expect(!hangs, 'a store is not ready whose write hangs')
        const isFull = cluster.isFull && cluster.fullSince < startedAt - TRUST_MS && hasMetFull && pool.hasMetFull
        world.expect(!isFull, 'a store is not ready whose creates fail')
      },
      (error: unknown) => {
        isSettled = true
        world.tell('ping: not ready', error)
        world.expect((error as Error).message !== '', 'a ping that fails says why')
        const saysThatOneHangs = String(error).includes('A write has had no answer')
        world.expect(mayHang || !saysThatOneHangs, 'no write is said to hang that does not')
        const wasWell = isWell && cluster.isWellSince(startedAt) && !pool.isBusy
        world.expect(!wasWell, 'a store is ready while all is well')
      },
    )
  }
}
