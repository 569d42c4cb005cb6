import { isBuiltin } from 'node:module'
import process from 'node:process'
import { setTimeout as sleep } from 'node:timers/promises'
import { explain, isBusy } from './errors.ts'

/** What the store calls of an open database: a `DatabaseSync` of `node:sqlite`, or a `Database` of better-sqlite3. */
export interface SqliteHandle {
  /** Runs SQL that gives no rows; may be several statements. Throws if one fails. */
  exec(sql: string): unknown
  /** Prepares a statement, which the store uses as long as it is open. */
  prepare(sql: string): SqliteStatement
  /** Closes the database. The store calls it only if it opened the database itself. */
  close(): unknown
}

/** What the store calls of a prepared statement. */
export interface SqliteStatement {
  /** Runs the statement. Throws if it fails. */
  run(...values: SqliteValue[]): {
    /** How many rows it has changed. */
    readonly changes: number | bigint
  }
  /** Runs a query, and gives all its rows. */
  all(...values: SqliteValue[]): unknown[]
  /** Gives rows one by one. Without it, the store reads all rows that a page may have before it cuts the page. */
  iterate?(...values: SqliteValue[]): Iterable<unknown>
  /** Asks `node:sqlite` for integers as bigint. */
  setReadBigInts?(enabled: boolean): unknown
  /** Asks better-sqlite3 for integers as bigint. */
  safeIntegers?(enabled: boolean): unknown
  /** Asks `node:sqlite` for rows as arrays. */
  setReturnArrays?(enabled: boolean): unknown
  /** Asks better-sqlite3 for rows as arrays. */
  raw?(enabled: boolean): unknown
}

/** A value that is bound to a statement; never `undefined`, which binds differently from version to version. */
export type SqliteValue = string | number | bigint | null

/** Says in the header of a file what it is for: "PLNT" (sqlite.org/fileformat.html section 1.3.17). */
const APPLICATION_ID = 0x504c4e54n
const SCHEMA_VERSION = 1n

const SCHEMA = `
  CREATE TABLE plants (
    owner TEXT NOT NULL,
    id INTEGER NOT NULL,
    name TEXT NOT NULL,
    tag TEXT,
    PRIMARY KEY (owner, id)
  ) STRICT, WITHOUT ROWID;
  PRAGMA application_id = ${APPLICATION_ID};
  PRAGMA user_version = ${SCHEMA_VERSION}`

/** How long to wait until a locked file is tried again. */
export const RETRY_MS = 5

/**
 * What makes a commit survive a power cut. Some builds of SQLite reopen a WAL file with NORMAL, which loses commits. On
 * macOS only fullfsync makes the drive write; elsewhere it does nothing.
 */
const DURABLE = 'PRAGMA synchronous = FULL; PRAGMA fullfsync = ON'

/** How much room the log keeps on the disk when it starts anew: to get that again would take time. */
const KEPT_LOG_BYTES = 16 * 2 ** 20

/** A connection to a file of plants, the same for every driver. Its errors name the file. */
export class SqliteConnection {
  readonly #handle: SqliteHandle
  readonly #ownsHandle: boolean
  readonly #file: string
  readonly #busyTimeoutMs: number
  readonly #begin: SqliteStatement
  readonly #commit: SqliteStatement
  readonly #rollback: SqliteStatement

  /** @throws if the file cannot be opened, or holds anything but plants in this version's schema */
  constructor(source: string | SqliteHandle, busyTimeoutMs: number) {
    this.#ownsHandle = typeof source === 'string'
    this.#handle = typeof source === 'string' ? openFile(source) : source
    this.#file = typeof source === 'string' ? source : pathOf(source) || ':memory:'
    this.#busyTimeoutMs = busyTimeoutMs
    try {
      this.#begin = this.prepare('BEGIN IMMEDIATE')
      this.#commit = this.prepare('COMMIT')
      this.#rollback = this.prepare('ROLLBACK')
      this.#setUp()
    } catch (error) {
      this.close()
      throw this.explain(error)
    }
  }

  /** Prepares a statement that gives every integer as a bigint: as numbers, those beyond 2^53 throw or are rounded. */
  prepare(sql: string): SqliteStatement {
    const statement = this.#handle.prepare(sql)
    statement.setReadBigInts?.(true)
    statement.safeIntegers?.(true)
    return statement
  }

  /**
   * Prepares a query that reads its rows as the caller takes them. They are arrays of their columns if the driver can
   * make them, which is faster. A caller that does not take all rows must end the iteration, as the end of a `for` loop
   * does: an open read keeps SQLite from emptying its log.
   */
  prepareQuery(sql: string): (...values: SqliteValue[]) => Iterable<unknown> {
    const statement = this.prepare(sql)
    statement.setReturnArrays?.(true)
    statement.raw?.(true)
    return (...values) => statement.iterate?.(...values) ?? statement.all(...values)
  }

  /** Does the work in a transaction that has the write lock from the start, so that only BEGIN can find it taken. */
  transaction<Result>(work: () => Result): Result {
    this.#begin.run()
    try {
      const result = work()
      this.#commit.run()
      return result
    } catch (error) {
      try {
        this.#rollback.run()
      } catch {
        // SQLite has rolled back by itself, as it does if the disk is full.
      }
      throw error
    }
  }

  /**
   * Does the work once no other process has the file locked. SQLite's own busy handler would stop the event loop while
   * it waits; with a timer everything else goes on.
   * @throws StoreUnavailableError if the file stays locked, or trying again later may help
   */
  async whenFree<Result>(work: () => Result): Promise<Result> {
    const deadline = performance.now() + this.#busyTimeoutMs
    for (;;) {
      try {
        return work()
      } catch (error) {
        if (!isBusy(error) || performance.now() >= deadline) throw this.explain(error)
      }
      await sleep(RETRY_MS)
    }
  }

  /** What to tell the caller of the store. */
  explain(error: unknown): Error {
    return explain(error, this.#file)
  }

  /** Closes the database if it was opened here. */
  close(): void {
    if (this.#ownsHandle) this.#handle.close()
  }

  #setUp(): void {
    this.#handle.exec(`PRAGMA busy_timeout = ${this.#busyTimeoutMs}; ${DURABLE}`)
    this.transaction(() => this.#checkSchema())
    this.#handle.exec(`
      PRAGMA journal_mode = WAL;
      PRAGMA journal_size_limit = ${KEPT_LOG_BYTES};
      PRAGMA busy_timeout = 0`)
  }

  #checkSchema(): void {
    const [found] = this.prepare(
      `
      SELECT application_id AS application, user_version AS version, (SELECT count(*) FROM sqlite_schema) AS entries
      FROM pragma_application_id, pragma_user_version`,
    ).all() as [Record<'application' | 'version' | 'entries', bigint>]
    if (found.application === 0n && found.version === 0n && found.entries === 0n) {
      this.#handle.exec(SCHEMA)
    } else if (found.application !== APPLICATION_ID) {
      throw new Error('it holds something other than plants; nothing was changed')
    } else if (found.version !== SCHEMA_VERSION) {
      throw new Error(`its schema has version ${found.version}, and this plant-store knows version ${SCHEMA_VERSION}`)
    }
    // Writes nothing, but fails if the file cannot be written.
    this.#handle.exec('DELETE FROM plants WHERE false')
  }
}

function openFile(path: string): SqliteHandle {
  if (!isBuiltin('node:sqlite')) {
    const advice = 'use Node.js 22.13 or later, or pass a database of better-sqlite3'
    throw new Error(`SQLite database ${path}: this Node.js has no node:sqlite; ${advice}`)
  }
  const { DatabaseSync } = process.getBuiltinModule('node:sqlite')
  try {
    return new DatabaseSync(path)
  } catch (error) {
    throw explain(error, path)
  }
}

/** The absolute path of a file; empty if the database has none. */
function pathOf(handle: SqliteHandle): string {
  const [main] = handle.prepare('PRAGMA database_list').all() as [{ readonly file: string }]
  return main.file
}
