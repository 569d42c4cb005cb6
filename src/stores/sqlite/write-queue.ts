import { StoreUnavailableError } from '../../plants/store.ts'
import { clearTimeout, performance, setImmediate, setTimeout } from '../../timers.ts'
import { batchSize, type WaitingWrite } from '../batch-size.ts'
import { RETRY_MS, type SqliteConnection } from './connection.ts'
import { isBusy } from './errors.ts'
import type { SqliteStatement } from './handle.ts'

const TRY_INTERVAL_MS = 1000

/** How a plant is inserted, into a table that may have more columns. */
export const INSERT = 'INSERT INTO main.plants (owner, id, name, tag)'

type Write = () => boolean
type Entry = WaitingWrite<Write, boolean>

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
  readonly #waiting: Entry[] = []
  readonly #look: SqliteStatement
  #nextTryAt = 0
  #retry: NodeJS.Timeout | undefined
  /** When a locked file is tried again; Infinity if no timer is set. */
  #retryAt = Infinity

  constructor(connection: SqliteConnection, options: WriteQueueOptions) {
    this.#connection = connection
    this.#options = options
    // No token stands for this owner.
    this.#look = connection.prepare(`${INSERT} SELECT owner, id, name, tag FROM main.plants WHERE owner = ''`)
  }

  /** Settles once the write is committed. */
  add(write: Write, length = 0): Promise<boolean> {
    return new Promise((resolve, reject) => {
      const now = performance.now()
      const expiresAt = now + this.#options.busyTimeoutMs
      const isFirst = this.#waiting.push({ write, length, expiresAt, resolve, reject }) === 1
      // The retry is overdue if a test's fake timers have dropped its timer.
      if (isFirst || now > this.#retryAt) this.#commitSoon()
    })
  }

  /** Waits for all queued writes, by queuing an empty write behind them. */
  async idle(): Promise<void> {
    if (this.#waiting.length > 0) await this.add(() => true).catch(() => undefined)
  }

  /** Inserts nothing, under the lock; after a write has failed, tries one. @throws if no plant can be created now */
  check(): void {
    if (this.#connection.failure !== undefined) return this.#tryWrite()
    this.#connection.transaction(() => this.#look.run())
  }

  #tryWrite(): void {
    const now = performance.now()
    try {
      if (now < this.#nextTryAt) throw this.#connection.failure
      this.#nextTryAt = now + TRY_INTERVAL_MS
      this.#connection.transaction(() => {
        // The plant needs two pages of its own, so the file must have room for them.
        this.#connection.prepare(`${INSERT} VALUES ('', 0, hex(zeroblob(4096)), NULL)`).run()
        this.#connection.prepare("DELETE FROM main.plants WHERE owner = ''").run()
      })
      this.#connection.failure = undefined
    } catch (error) {
      if (!(error instanceof StoreUnavailableError)) throw error
      // The outcome of the tried write may be unknown, but nothing was done for the caller.
      throw new StoreUnavailableError(error.message, { cause: error.cause })
    }
  }

  readonly #commitNext = (): void => {
    const isLocked = !this.#commit(this.#waiting.slice(0, batchSize(this.#waiting, this.#options.maxBatch)))
    if (this.#waiting.length === 0) return
    if (!isLocked) return this.#commitSoon()
    this.#retryAt = performance.now() + RETRY_MS
    this.#retry = setTimeout(this.#commitNext, RETRY_MS)
  }

  #commitSoon(): void {
    clearTimeout(this.#retry)
    this.#retryAt = Infinity
    setImmediate(this.#commitNext)
  }

  /** Commits writes, or halves them until only the one that fails is alone. @returns false if the file is locked */
  #commit(group: readonly Entry[]): boolean {
    try {
      // After a commit has failed, a second failure would leave unknown what became of these plants. So one is tried.
      if (this.#connection.failure instanceof StoreUnavailableError) this.#tryWrite()
      const results = this.#connection.transaction(() => group.map(({ write }) => write()))
      this.#options.onBatch(group.length)
      for (const [index, { resolve }] of this.#waiting.splice(0, group.length).entries()) resolve(results[index]!)
    } catch (error) {
      if (isBusy(error)) {
        const now = performance.now()
        const valid = this.#waiting.findIndex(({ expiresAt }) => expiresAt > now)
        this.#reject(valid === -1 ? this.#waiting.length : valid, error)
        return false
      }
      // If it is unknown whether the group was committed, a second create of a plant would find the first.
      const isSure = !(error instanceof StoreUnavailableError)
      if (isSure && group.length > 1) {
        const half = Math.ceil(group.length / 2)
        return this.#commit(group.slice(0, half)) && this.#commit(group.slice(half))
      }
      this.#reject(group.length, error)
    }
    return true
  }

  #reject(count: number, error: unknown): void {
    for (const { reject } of this.#waiting.splice(0, count)) reject(this.#connection.explain(error))
  }
}
