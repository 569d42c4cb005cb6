import type { PostgresStore } from '../../../src/stores/postgres/postgres-store.ts'
import type { Pool } from './pool.ts'

/** How long what a ping says may be old, and how long a write may take until the store is not ready. */
const TRUST_MS = 900

/** Pings of a store, which must say what is so. */
export class Probes {
  readonly #pool: Pool
  readonly #store: PostgresStore

  constructor(pool: Pool, store: PostgresStore) {
    this.#pool = pool
    this.#store = store
  }

  ping(): void {
    const { world, cluster, scenario } = this.#pool
    const { time } = world
    const startedAt = time.now
    const hangs = this.#pool.hasHangingWrite(startedAt - TRUST_MS)
    const isWell = cluster.isWellSince(startedAt - TRUST_MS - 2.5 * scenario.timeoutMs)
    const { hasMetFull } = this.#pool
    let isSettled = false
    const seeThatTried = this.#pool.thrift.pinged()
    // It may send two statements that write nothing, after a write that the table refuses.
    time.after(4 * scenario.timeoutMs, () => world.expect(isSettled, 'each ping ends'))
    this.#store.ping().then(
      () => {
        isSettled = true
        world.tell('ping: ready')
        seeThatTried()
        world.expect(!hangs, 'a store is not ready whose write hangs')
        const isFull = cluster.isFull && cluster.fullSince < startedAt - TRUST_MS && hasMetFull && this.#pool.hasMetFull
        world.expect(!isFull, 'a store is not ready that has met a full disk')
      },
      (error: unknown) => {
        isSettled = true
        world.tell('ping: not ready', error)
        this.#pool.thrift.failed()
        const wasWell = isWell && cluster.isWellSince(startedAt) && !this.#pool.isBusy
        world.expect(!wasWell, 'a store is ready while all is well')
      },
    )
  }
}
