import { closeSync, existsSync, openSync, statSync } from 'node:fs'
import { resolve } from 'node:path'
import process from 'node:process'
import { StoreUnavailableError } from '../../plants/store.ts'
import { performance, sleep } from '../../timers.ts'
import { explain, explainCommit, explainOpening, isBusy, isRefused } from './errors.ts'
import { ask, pathOf, type SqliteHandle, type SqliteStatement, type SqliteValue } from './handle.ts'
import { WatchedFile } from './watched-file.ts'

/** Marks a file of plants in its header: "PLNT" (sqlite.org/fileformat.html section 1.3.17). */
const APPLICATION_ID = 0x504c4e54
const SCHEMA_VERSION = 1

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

export const RETRY_MS = 5

/** A connection to a file of plants, the same for every driver. Its errors name the file. */
export class SqliteConnection {
  /** Why a transaction has failed, unless it was for a lock or one plant. The queue removes it once writes succeed again. */
  failure: unknown
  readonly #handle: SqliteHandle
  readonly #ownsHandle: boolean
  readonly #file: string
  readonly #options: ConnectionOptions
  #watched: WatchedFile | undefined
  readonly #begin: SqliteStatement
  readonly #commit: SqliteStatement
  readonly #rollback: SqliteStatement

  constructor(source: string | SqliteHandle, options: ConnectionOptions) {
    this.#options = options
    this.#ownsHandle = typeof source === 'string'
    this.#handle = typeof source === 'string' ? openFile(source, options) : source
    const path = pathOf(this.#handle)
    this.#file = typeof source === 'string' ? source : path || ':memory:'
    try {
      this.#handle.exec(`PRAGMA busy_timeout = ${options.busyTimeoutMs}`)
      checkLog(path)
      // For commits to survive a power cut: some builds reopen WAL files with NORMAL, and macOS needs fullfsync.
      this.#handle.exec('PRAGMA synchronous = FULL; PRAGMA fullfsync = ON')
      this.#begin = this.prepare('BEGIN IMMEDIATE')
      this.#commit = this.prepare('COMMIT')
      this.#rollback = this.prepare('ROLLBACK')
      this.transaction(() => this.#checkSchema())
      // A log that starts anew keeps this much room on the disk, as getting it again takes time.
      this.#handle.exec(`
        PRAGMA journal_mode = WAL;
        PRAGMA journal_size_limit = ${16 * 2 ** 20};
        PRAGMA busy_timeout = 0`)
      // A database in memory has no log, and no file that could be moved.
      if (ask(this.#handle, 'journal_mode') === 'wal') {
        const name = typeof source === 'string' && !source.startsWith('file:') ? resolve(source) : path
        this.#watched = new WatchedFile(name, this.#handle, options.onWarning)
      }
    } catch (error) {
      this.close()
      throw explainOpening(error, this.#file)
    }
  }

  /** Prepares a statement that gives every integer as a bigint: as numbers, those beyond 2^53 throw or are rounded. */
  prepare(sql: string): SqliteStatement {
    const statement = this.#handle.prepare(sql)
    statement.setReadBigInts?.(true)
    statement.safeIntegers?.(true)
    return statement
  }

  /** Prepares a query. End the iteration, as a `for` loop does: an open read keeps SQLite from emptying its log. */
  prepareQuery(sql: string): (...values: SqliteValue[]) => Iterable<unknown> {
    const statement = this.prepare(sql)
    statement.setReturnArrays?.(true)
    statement.raw?.(true)
    return (...values) => statement.iterate(...values)
  }

  /** Takes the write lock at once, so that only BEGIN can find it taken. */
  transaction<Result>(work: () => Result): Result {
    this.#watched?.check()
    try {
      this.#begin.run()
      return this.#commitAfter(work)
    } catch (error) {
      // That of a commit stays until a commit succeeds.
      const isNews = !isBusy(error) && !isRefused(error) && !(this.failure instanceof StoreUnavailableError)
      if (isNews) this.failure = error
      throw error
    }
  }

  #commitAfter<Result>(work: () => Result): Result {
    let isDone = false
    try {
      const result = work()
      isDone = true
      this.#commit.run()
      return result
    } catch (error) {
      try {
        this.#rollback.run()
      } catch {
        // SQLite has rolled back itself, as it does if a commit fails.
      }
      throw isDone ? explainCommit(error, this.#file) : error
    }
  }

  /** Waits for a lock with a timer: SQLite's own busy handler would stop the event loop. */
  async whenFree<Result>(work: () => Result, waitMs: number = this.#options.busyTimeoutMs): Promise<Result> {
    const deadline = performance.now() + waitMs
    for (;;) {
      try {
        this.#watched?.checkForRead()
        return work()
      } catch (error) {
        if (!isBusy(error) || performance.now() >= deadline) throw this.explain(error)
      }
      await sleep(RETRY_MS)
    }
  }

  get logBytes(): number {
    return this.#watched?.logBytes ?? 0
  }

  explain(error: unknown): Error {
    return explain(error, this.#file)
  }

  /** Closes the database if it was opened here, unless that would harm what another process has written. */
  close(): void {
    if (this.#watched?.isOpenedAnew === true) return
    this.#watched = undefined
    if (this.#ownsHandle) this.#handle.close()
  }

  #checkSchema(): void {
    const application = Number(ask(this.#handle, 'application_id'))
    const version = Number(ask(this.#handle, 'user_version'))
    const isEmpty = this.prepare('SELECT 1 FROM sqlite_schema').all().length === 0
    if (application === 0 && version === 0 && isEmpty) {
      if (!this.#options.migrate) throw new Error('it holds no plants, and is not to be made a file of plants')
      this.#handle.exec(SCHEMA)
    } else if (application !== APPLICATION_ID) {
      throw new Error('it holds something other than plants; nothing was changed')
    } else if (version !== SCHEMA_VERSION) {
      throw new Error(`its schema has version ${version}, and this plant-store knows version ${SCHEMA_VERSION}`)
    }
    // Writes nothing, but fails if the file cannot be written.
    this.#handle.exec('DELETE FROM plants WHERE false')
  }
}

export interface ConnectionOptions {
  readonly busyTimeoutMs: number
  readonly migrate: boolean
  readonly onWarning: (message: string) => void
}

export function openFile(path: string, { migrate }: ConnectionOptions): SqliteHandle {
  const sqlite = process.getBuiltinModule('node:sqlite') as typeof import('node:sqlite') | undefined
  if (sqlite === undefined) throw new Error('SQLite needs Node 22.13 or later, or an open database of better-sqlite3')
  try {
    checkLog(path)
    if (migrate) makeFile(path)
    else checkIsThere(() => new sqlite.DatabaseSync(path, { readOnly: true }))
    return new sqlite.DatabaseSync(path)
  } catch (error) {
    throw explainOpening(error, path)
  }
}

/** Only its user may read it, and SQLite does the same for its log and shared memory. A URI is left to SQLite. */
function makeFile(path: string): void {
  // One that is there is not opened here: to close it would drop the locks that this process has on it.
  if (/^(?::memory:$|file:)/.test(path) || existsSync(path)) return
  // Another process may make it at the same moment.
  closeSync(openSync(path, 'a', 0o600))
}

function checkIsThere(open: () => SqliteHandle): void {
  try {
    open().close()
  } catch (cause) {
    throw new Error('there is no such file, and none is to be made', { cause })
  }
}

/** Checks that the log of a path has a file: SQLite would remove the log. No path is a database without a file. */
export function checkLog(path: string): void {
  const [file, log] = [path, `${path}-wal`].map((name) => statSync(name, { throwIfNoEntry: false })?.size ?? 0)
  if (path === '' || file !== 0 || log === 0) return
  throw new Error('its log (-wal) may hold plants, but the file is missing or empty; SQLite would remove the log')
}
