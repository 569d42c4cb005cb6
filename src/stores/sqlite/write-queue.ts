import { StoreUnavailableError } from '../../plants/store.ts'
import { reportBatch } from '../batch-channel.ts'
import { RETRY_MS, type SqliteConnection } from './connection.ts'
import { isBusy } from './errors.ts'
import type { WriteProbe } from './write-probe.ts'

/** Writes within a transaction, and returns whether there was something to change. */
export type Write = () => boolean

interface Entry {
  readonly write: Write
  /** When it is refused if the file is locked. */
  readonly expiresAt: number
  readonly resolve: (result: boolean) => void
  readonly reject: (reason: unknown) => void
}

/** How a {@link WriteQueue} carries out writes. */
export interface WriteQueueOptions {
  /** How long a write waits while another process has the file locked. */
  readonly busyTimeoutMs: number
  /** The most writes that share a transaction. */
  readonly maxBatch: number
}

/**
 * Carries out writes in the order in which they came, all that came in one turn of the event loop in one transaction. A
 * write that was refused is not carried out later.
 */
export class WriteQueue {
  readonly #connection: SqliteConnection
  readonly #probe: WriteProbe
  readonly #busyTimeoutMs: number
  readonly #maxBatch: number
  /** While a write waits here, a turn is scheduled. */
  readonly #waiting: Entry[] = []
  /** How many of those that wait get a transaction each: they shared one that failed. */
  #single = 0
  readonly #onIdle: (() => void)[] = []

  constructor(connection: SqliteConnection, probe: WriteProbe, { busyTimeoutMs, maxBatch }: WriteQueueOptions) {
    this.#connection = connection
    this.#probe = probe
    this.#busyTimeoutMs = busyTimeoutMs
    this.#maxBatch = maxBatch
  }

  /**
   * Settles once the write is committed.
   * @throws StoreUnavailableError if the file stays locked, or trying again later may help; it says whether the write
   *   may have been carried out
   */
  add(write: Write): Promise<boolean> {
    return new Promise((resolve, reject) => {
      const expiresAt = performance.now() + this.#busyTimeoutMs
      if (this.#waiting.push({ write, expiresAt, resolve, reject }) === 1) setImmediate(this.#takeTurn)
    })
  }

  /** Settles once no write waits. */
  idle(): Promise<void> {
    return new Promise((resolve) => {
      if (this.#waiting.length === 0) resolve()
      else this.#onIdle.push(resolve)
    })
  }

  readonly #takeTurn = (): void => {
    const isLocked = !this.#carryOut()
    if (this.#waiting.length === 0) for (const resolve of this.#onIdle.splice(0)) resolve()
    else if (isLocked) setTimeout(this.#takeTurn, RETRY_MS)
    else setImmediate(this.#takeTurn)
  }

  /**
   * Carries out the next group. If one of its writes fails, it is rolled back, and each gets a transaction.
   * @returns false if the file is locked
   */
  #carryOut(): boolean {
    const group = this.#waiting.slice(0, this.#single > 0 ? 1 : this.#maxBatch)
    try {
      this.#probe.checkCommits()
      const results = this.#connection.transaction(() => group.map(({ write }) => write()))
      reportBatch(group.length)
      for (const [index, { resolve }] of this.#remove(group.length).entries()) resolve(results[index]!)
    } catch (error) {
      if (isBusy(error)) {
        this.#refuseExpired(error)
        return false
      }
      // If it is unknown whether the group was committed, a second create of a plant would find the first.
      const isSure = !(error instanceof StoreUnavailableError)
      if (isSure && group.length > 1) this.#single = group.length
      else this.#refuse(group.length, error)
    }
    return true
  }

  #refuseExpired(error: unknown): void {
    const now = performance.now()
    const valid = this.#waiting.findIndex(({ expiresAt }) => expiresAt > now)
    this.#refuse(valid === -1 ? this.#waiting.length : valid, error)
  }

  #refuse(count: number, error: unknown): void {
    for (const { reject } of this.#remove(count)) reject(this.#connection.explain(error))
  }

  #remove(count: number): Entry[] {
    this.#single = Math.max(0, this.#single - count)
    return this.#waiting.splice(0, count)
  }
}
