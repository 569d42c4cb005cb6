import type { SqliteConnection } from './connection.ts'
import type { SqliteStatement } from './handle.ts'

/** How often to try whether writes succeed again. */
const TRY_INTERVAL_MS = 1000

/**
 * A plant that needs two pages of its own, so that the file must have room for it. No owner is called so, and nobody
 * sees the plant: it goes in the transaction in which it came. That writes all the same.
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
   * Takes the write lock and gives it up. That says nothing of a full disk: so if a write has failed, this writes.
   * @throws if no plant can be created now
   */
  check(): void {
    const { failure } = this.#connection
    if (failure === undefined) {
      this.#connection.transaction(() => this.#look.all())
      return
    }
    const now = performance.now()
    if (now < this.#nextTryAt) throw failure as Error
    this.#nextTryAt = now + TRY_INTERVAL_MS
    this.#connection.transaction(() => {
      this.#insert.run()
      this.#remove.run()
    })
    this.#connection.failure = undefined
  }
}
