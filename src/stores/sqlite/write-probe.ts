import { StoreUnavailableError } from '../../plants/store.ts'
import type { SqliteConnection } from './connection.ts'
import type { SqliteStatement } from './handle.ts'

/** How long to wait before trying again whether writes succeed. */
const TRY_INTERVAL_MS = 1000

/**
 * A plant that needs two pages of its own, so that the file must have room for it. No token stands for its owner, and
 * it is deleted in the same transaction.
 */
const INSERT = "INSERT INTO plants VALUES ('', 0, hex(zeroblob(4096)), NULL)"
const REMOVE = "DELETE FROM plants WHERE owner = ''"

/** Tells whether plants can be created now. */
export class WriteProbe {
  readonly #connection: SqliteConnection
  readonly #look: SqliteStatement
  readonly #insert: SqliteStatement
  readonly #remove: SqliteStatement
  #nextTryAt = 0

  constructor(connection: SqliteConnection) {
    this.#connection = connection
    this.#look = connection.prepare('SELECT 1 FROM plants LIMIT 1')
    this.#insert = connection.prepare(INSERT)
    this.#remove = connection.prepare(REMOVE)
  }

  /**
   * Takes the write lock and gives it up. That cannot show a full disk, so after a write has failed, one is tried.
   * @throws if no plant can be created now
   */
  check(): void {
    if (this.#connection.failure === undefined) this.#connection.transaction(() => this.#look.all())
    else this.#try()
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
        this.#insert.run()
        this.#remove.run()
      })
      this.#connection.failure = undefined
    } catch (error) {
      if (!(error instanceof StoreUnavailableError)) throw error
      // The outcome of the tried write may be unknown, but nothing was carried out for the caller.
      throw new StoreUnavailableError(error.message, { cause: error.cause })
    }
  }
}
