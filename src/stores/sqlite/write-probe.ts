import { StoreUnavailableError } from '../../plants/store.ts'
import type { SqliteConnection } from './connection.ts'

/** How long to wait before trying again whether writes succeed. */
const TRY_INTERVAL_MS = 1000

/** Tells whether plants can be created now. */
export class WriteProbe {
  readonly #connection: SqliteConnection
  #nextTryAt = 0

  constructor(connection: SqliteConnection) {
    this.#connection = connection
  }

  /**
   * Takes the write lock and gives it up. That cannot show a full disk, so after a write has failed, one is tried.
   * @throws if no plant can be created now
   */
  check(): void {
    if (this.#connection.failure !== undefined) return this.#try()
    this.#connection.transaction(() => this.#connection.prepare('SELECT 1 FROM plants LIMIT 1').all())
  }

  /**
   * To be called before a write. After a commit has failed, the next one would leave unknown what became of its plants
   * if it failed too. So commits without plants are tried first, until one succeeds.
   * @throws StoreUnavailableError if nothing is to be written now
   */
  checkCommits(): void {
    if (this.#connection.failure instanceof StoreUnavailableError) this.#try()
  }

  #try(): void {
    const now = performance.now()
    try {
      if (now < this.#nextTryAt) throw this.#connection.failure
      this.#nextTryAt = now + TRY_INTERVAL_MS
      this.#connection.transaction(() => {
        // Needs two pages of its own, so that the file must have room for it. No token stands for its owner.
        this.#connection.prepare("INSERT INTO plants VALUES ('', 0, hex(zeroblob(4096)), NULL)").run()
        this.#connection.prepare("DELETE FROM plants WHERE owner = ''").run()
      })
      this.#connection.failure = undefined
    } catch (error) {
      if (!(error instanceof StoreUnavailableError)) throw error
      // The outcome of the tried write may be unknown, but nothing was carried out for the caller.
      throw new StoreUnavailableError(error.message, { cause: error.cause })
    }
  }
}
