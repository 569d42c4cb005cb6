import { StoreUnavailableError } from '../../plants/store.ts'
import { clearTimeout, performance, setImmediate, setTimeout } from '../../timers.ts'
import { nextBatchSize, type QueuedWrite } from '../batch-size.ts'
import { LOCK_RETRY_MS, type SqliteConnection } from './connection.ts'
import { isBusy } from './errors.ts'
import type { SqliteStatement } from './handle.ts'

const PROBE_INTERVAL_MS = 1000

/** How a plant is inserted, into a table that may have more columns. */
export const INSERT_PLANT = 'INSERT INTO main.plants (owner, id, name, tag)'

type Write = () => boolean
type Entry = QueuedWrite<Write, boolean>

export interface WriteQueueOptions {
  readonly busyTimeoutMs: number
  readonly maxBatch: number
  readonly onBatch: (size: number) => void
}

/** Commits writes in their order, those of one round in one transaction, unless they are too many or too large. */
export class WriteQueue {
  readonly #connection: SqliteConnection
  readonly #options: WriteQueueOptions
  /** While a write waits here, `#commitNext` is scheduled. */
  readonly #queue: Entry[] = []
  readonly #emptyInsert: SqliteStatement
  #nextProbeAt = 0
  #retryTimer: NodeJS.Timeout | undefined
  /** When a locked file is tried again; Infinity if no timer is set. */
  #retryAt = Infinity

  constructor(connection: SqliteConnection, options: WriteQueueOptions) {
    this.#connection = connection
    this.#options = options
    // No token stands for this owner.
    this.#emptyInsert = connection.prepare(
      `${INSERT_PLANT} SELECT owner, id, name, tag FROM main.plants WHERE owner = ''`,
    )
  }

  /** Settles once the write is committed. */
  add(write: Write, length = 0): Promise<boolean> {
    return new Promise((resolve, reject) => {
      const now = performance.now()
      const expiresAt = now + this.#options.busyTimeoutMs
      const isFirst = this.#queue.push({ write, length, expiresAt, resolve, reject }) === 1
      // The retry is overdue if a test's fake timers have dropped its timer.
      if (isFirst || now > this.#retryAt) this.#scheduleCommit()
    })
  }

  /** Waits for all queued writes, by queuing an empty write behind them. */
  async onIdle(): Promise<void> {
    if (this.#queue.length > 0) await this.add(() => true).catch(() => undefined)
  }

  /** Inserts nothing, under the lock; after a write has failed, tries one. @throws if no plant can be created now */
  checkWritable(): void {
    if (this.#connection.writeError !== undefined) return this.#probeWrite()
    this.#connection.transaction(() => this.#emptyInsert.run())
  }

  #probeWrite(): void {
    const now = performance.now()
    try {
      if (now < this.#nextProbeAt) throw this.#connection.writeError
      this.#nextProbeAt = now + PROBE_INTERVAL_MS
      this.#connection.transaction(() => {
        // The plant needs two pages of its own, so the file must have room for them.
        this.#connection.prepare(`${INSERT_PLANT} VALUES ('', 0, hex(zeroblob(4096)), NULL)`).run()
        this.#connection.prepare("DELETE FROM main.plants WHERE owner = ''").run()
      })
      this.#connection.writeError = undefined
    } catch (error) {
      if (!(error instanceof StoreUnavailableError)) throw error
      // The outcome of the tried write may be unknown, but nothing was done for the caller.
      throw new StoreUnavailableError(error.message, { cause: error.cause })
    }
  }

  readonly #commitNextBatch = (): void => {
    const isLocked = !this.#commit(this.#queue.slice(0, nextBatchSize(this.#queue, this.#options.maxBatch)))
    if (this.#queue.length === 0) return
    if (!isLocked) return this.#scheduleCommit()
    this.#retryAt = performance.now() + LOCK_RETRY_MS
    this.#retryTimer = setTimeout(this.#commitNextBatch, LOCK_RETRY_MS)
  }

  #scheduleCommit(): void {
    clearTimeout(this.#retryTimer)
    this.#retryAt = Infinity
    setImmediate(this.#commitNextBatch)
  }

  /** Commits writes, or halves them until only the one that fails is alone. @returns false if the file is locked */
  #commit(batch: readonly Entry[]): boolean {
    try {
      // After a commit has failed, a second failure would leave unknown what became of these plants. So one is tried.
      if (this.#connection.writeError instanceof StoreUnavailableError) this.#probeWrite()
      const results = this.#connection.transaction(() => batch.map(({ write }) => write()))
      this.#options.onBatch(batch.length)
      for (const [index, { resolve }] of this.#queue.splice(0, batch.length).entries()) resolve(results[index]!)
    } catch (error) {
      if (isBusy(error)) {
        const now = performance.now()
        const firstUnexpired = this.#queue.findIndex(({ expiresAt }) => expiresAt > now)
        this.#rejectFirst(firstUnexpired === -1 ? this.#queue.length : firstUnexpired, error)
        return false
      }
      // If it is unknown whether the group was committed, a second create of a plant would find the first.
      const isOutcomeKnown = !(error instanceof StoreUnavailableError)
      if (isOutcomeKnown && batch.length > 1) {
        const half = Math.ceil(batch.length / 2)
        return this.#commit(batch.slice(0, half)) && this.#commit(batch.slice(half))
      }
      this.#rejectFirst(batch.length, error)
    }
    return true
  }

  #rejectFirst(count: number, error: unknown): void {
    for (const { reject } of this.#queue.splice(0, count)) reject(this.#connection.toStoreError(error))
  }
}
