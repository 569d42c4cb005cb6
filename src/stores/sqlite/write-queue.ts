import { StoreUnavailableError } from '../../legacy/plants/store.ts'
import { clearTimeout, performance, setImmediate, setTimeout } from '../../legacy/timers.ts'
import { nextBatchSize, type QueuedWrite } from '../../legacy/stores/batch-size.ts'
import { LOCK_RETRY_MS, type SqliteConnection } from './connection.ts'
import { isBusy } from './errors.ts'
import type { SqliteStatement } from './handle.ts'

/** The interval between probe writes while writes are failing. */
const PROBE_INTERVAL_MS = 1000

/** The start of an INSERT. It names the columns, because the application might have added more columns to the table. */
export const INSERT_PLANT = 'INSERT INTO main.plants (owner, id, name, tag)'

type Write = () => boolean
type Entry = QueuedWrite<Write, boolean>

interface WriteQueueOptions {
  readonly busyTimeoutMs: number
  readonly maxBatch: number
  readonly onBatch: (size: number) => void
}

/**
 * Commits writes in the order in which they were added. Writes that are added in the same event-loop tick share a
 * transaction, up to the limits of a batch.
 */
export class WriteQueue {
  readonly #connection: SqliteConnection
  readonly #options: WriteQueueOptions
  /** While this is not empty, `#commitNextBatch` is scheduled. */
  readonly #queue: Entry[] = []
  readonly #emptyInsert: SqliteStatement
  #nextProbeAt = 0
  #retryTimer: NodeJS.Timeout | undefined
  /** When `#retryTimer` will try a locked database again; Infinity if the timer isn't set. */
  #retryAt = Infinity

  constructor(connection: SqliteConnection, options: WriteQueueOptions) {
    this.#connection = connection
    this.#options = options
    // An owner can't be empty, so this selects and inserts nothing.
    this.#emptyInsert = connection.prepare(
      `${INSERT_PLANT} SELECT owner, id, name, tag FROM main.plants WHERE owner = ''`,
    )
  }

  /** Resolves once the write is committed, with the write's result. */
  add(write: Write, length = 0): Promise<boolean> {
    return new Promise((resolve, reject) => {
      const now = performance.now()
      const expiresAt = now + this.#options.busyTimeoutMs
      const isFirst = this.#queue.push({ write, length, expiresAt, resolve, reject }) === 1
      // A test's fake timers might have dropped the retry timer. In that case, the retry is overdue.
      if (isFirst || now > this.#retryAt) this.#scheduleCommit()
    })
  }

  /** Waits until all queued writes have settled, by adding a no-op write after them. */
  async onIdle(): Promise<void> {
    if (this.#queue.length > 0) await this.add(() => true).catch(() => undefined)
  }

  /**
   * Checks that the database is writable: takes the write lock and runs a statement that inserts nothing. After a write
   * has failed, actually writes a plant instead.
   * @throws Error if plants can't be created now
   */
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
        // The name fills two pages of the file, so this fails if the disk is full.
        this.#connection.prepare(`${INSERT_PLANT} VALUES ('', 0, hex(zeroblob(4096)), NULL)`).run()
        this.#connection.prepare("DELETE FROM main.plants WHERE owner = ''").run()
      })
      this.#connection.writeError = undefined
    } catch (error) {
      if (!(error instanceof StoreUnavailableError)) throw error
      // The outcome of the probe's own write might be unknown, but nothing was done for the caller of this method.
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

  /**
   * Commits a batch. If a write fails, splits the batch in half repeatedly until the failing write is alone, so that
   * the other writes succeed.
   * @returns false if the database is locked; the unexpired writes then remain in the queue
   */
  #commit(batch: readonly Entry[]): boolean {
    try {
      // The last commit failed. If this one failed too, the outcome of its writes would be unknown. Probing first means
      // that these writes fail with "nothing was done" instead.
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
      // Don't retry a batch that might already be committed: its creates would find their own plants, and report
      // duplicates.
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
