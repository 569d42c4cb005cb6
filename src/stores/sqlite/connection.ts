import { resolve } from 'node:path'
import process from 'node:process'
import { StoreUnavailableError } from '../../plants/store.ts'
import { performance, sleep } from '../../timers.ts'
import { checkFiles, createFile, warnOfAccess } from './database-files.ts'
import { explain, explainCommit, explainOpening, isBusy, isRefused } from './errors.ts'
import { ask, checkDriver, firstRow, pathOf, prepareExact } from './handle.ts'
import type { SqliteHandle, SqliteStatement, SqliteValue } from './handle.ts'
import { readPath } from './path.ts'
import { WatchedFile } from './watched-file.ts'

/** Marks a file of plants in its header: "PLNT" (sqlite.org/fileformat.html section 1.3.17). */
const APPLICATION_ID = 0x504c4e54
const SCHEMA_VERSION = 1

const CREATE_TABLE = `CREATE TABLE plants (
    owner TEXT NOT NULL,
    id INTEGER NOT NULL,
    name TEXT NOT NULL,
    tag TEXT,
    PRIMARY KEY (owner, id)
  ) STRICT, WITHOUT ROWID`

export const RETRY_MS = 5

const FOREIGN = 'it holds something other than plants; nothing was changed'

const withoutIndentation = (sql: string): string => sql.replace(/\s+/g, ' ')

/** A connection to a file of plants, the same for every driver. Its errors name the file. */
export class SqliteConnection {
  /** Why a transaction has failed, unless it was for a lock or one plant. The queue removes it once writes succeed again. */
  failure: unknown
  readonly #handle: SqliteHandle
  readonly #ownsHandle: boolean
  readonly #file: string
  readonly #options: ConnectionOptions
  /** Whether iterators of this driver throw the error of a query. */
  readonly #iteratorsThrow: boolean
  /** The number of failed reads. */
  #failedReads = 0
  #watched: WatchedFile | undefined
  readonly #begin: SqliteStatement
  readonly #commit: SqliteStatement
  readonly #rollback: SqliteStatement

  constructor(source: string | SqliteHandle, options: ConnectionOptions) {
    this.#options = options
    this.#ownsHandle = typeof source === 'string'
    this.#file = typeof source === 'string' ? source : 'handle'
    let file = typeof source === 'string' ? readPath(source).file : undefined
    const name = file && resolve(file)
    this.#handle = typeof source === 'string' ? openFile(source, options) : source
    try {
      this.#handle.exec('PRAGMA busy_timeout = 0')
      // SQLite resolves symbolic links, and keeps the WAL beside the file that they point to.
      file = pathOf(this.#handle)
      if (typeof source !== 'string') this.#file = file || ':memory:'
      // Before any statement that reads the file.
      checkFiles(file)
      this.#iteratorsThrow = checkDriver(this.#handle)
      // BEGIN fails if the host has begun a transaction.
      this.#handle.exec('BEGIN; ROLLBACK')
      // For commits to survive a power cut: some builds reopen WAL files with NORMAL, and macOS needs fullfsync.
      this.#handle.exec('PRAGMA main.synchronous = FULL; PRAGMA fullfsync = ON')
      this.#begin = this.prepare('BEGIN IMMEDIATE')
      this.#commit = this.prepare('COMMIT')
      this.#rollback = this.prepare('ROLLBACK')
      this.transaction(() => this.#checkSchema())
      // A log that starts anew keeps this much room on the disk, as getting it again takes time.
      this.#handle.exec(`PRAGMA main.journal_mode = WAL; PRAGMA main.journal_size_limit = ${16 * 2 ** 20}`)
      this.#watched = this.#watch(name)
      // Windows has no such permissions.
      if (this.#watched !== undefined && process.platform !== 'win32') {
        warnOfAccess(file, (problem) => options.onWarning(`SQLite database ${this.#file}: ${problem}`))
      }
    } catch (error) {
      this.close()
      throw explainOpening(error, this.#file, file)
    }
  }

  /** A database in memory has no WAL, and no file that could be moved. */
  #watch(name: string | undefined): WatchedFile | undefined {
    const mode = ask(this.#handle, 'journal_mode')
    if (mode === 'memory') return undefined
    // A temporary file, which SQLite deletes, or one whose locks or shared memory the host has disabled.
    if (mode !== 'wal') throw new Error('it cannot have a write-ahead log (WAL)')
    return new WatchedFile(name ?? pathOf(this.#handle), this.#handle, this.#options.onWarning)
  }

  prepare(sql: string): SqliteStatement {
    return prepareExact(this.#handle, sql)
  }

  /** Prepares a query. End the iteration, as a `for` loop does: an open read keeps SQLite from emptying its log. */
  prepareQuery(sql: string): (...values: SqliteValue[]) => Iterable<unknown> {
    let statement: SqliteStatement
    let failedReads: number | undefined
    return (...values) => {
      // A statement of node:sqlite throws the error of a failed iteration once more when it is used again.
      if (failedReads !== this.#failedReads) {
        failedReads = this.#failedReads
        statement = this.prepare(sql)
        statement.setReturnArrays?.(true)
        statement.raw?.(true)
      }
      return this.#iteratorsThrow ? statement.iterate(...values) : statement.all(...values)
    }
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
        this.#failedReads++
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
    if (application === 0 && version === 0) {
      this.#adopt()
    } else if (application !== APPLICATION_ID) {
      throw new Error(FOREIGN)
    } else if (version !== SCHEMA_VERSION) {
      throw new Error(`its schema has version ${version}, and this plant-store knows version ${SCHEMA_VERSION}`)
    }
    // Writes nothing, but fails if the file cannot be written.
    this.#handle.exec('DELETE FROM main.plants WHERE false')
  }

  /** Makes a database of plants of an empty one, or of one that was restored from `.dump`, which lacks these numbers. */
  #adopt(): void {
    const query = "SELECT group_concat(sql) FROM main.sqlite_schema WHERE substr(name, 1, 7) <> 'sqlite_'"
    const [schema] = firstRow(this.prepare(query).all()) as [string | null]
    if (schema === null) {
      if (!this.#options.migrate) throw new Error('it holds no plants, and is not to be made a file of plants')
      this.#handle.exec(CREATE_TABLE)
    } else if (withoutIndentation(schema) !== withoutIndentation(CREATE_TABLE)) {
      throw new Error(FOREIGN)
    }
    this.#handle.exec(`PRAGMA main.application_id = ${APPLICATION_ID}; PRAGMA main.user_version = ${SCHEMA_VERSION}`)
  }
}

/** Opens a database. Blocks the thread while it is locked: SQLite itself doesn't wait for all locks that opening takes. */
export function openConnection(source: string | SqliteHandle, options: ConnectionOptions): SqliteConnection {
  let waitedMs = 0
  for (;;) {
    try {
      return new SqliteConnection(source, options)
    } catch (error) {
      if (!isBusy((error as Error).cause) || waitedMs >= options.busyTimeoutMs) throw error
    }
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, RETRY_MS)
    waitedMs += RETRY_MS
  }
}

export interface ConnectionOptions {
  readonly busyTimeoutMs: number
  readonly migrate: boolean
  readonly onWarning: (message: string) => void
}

/** Node 22.13 takes a URI for the name of a file. It can't create one of this name, because the folder `file:` is missing. */
function supportsUris({ DatabaseSync }: typeof import('node:sqlite')): boolean {
  try {
    new DatabaseSync('file:/plants?mode=memory').close()
    return true
  } catch {
    return false
  }
}

function openFile(path: string, { migrate }: ConnectionOptions): SqliteHandle {
  const database = readPath(path)
  const sqlite = process.getBuiltinModule('node:sqlite') as typeof import('node:sqlite') | undefined
  if (sqlite === undefined) throw new Error('SQLite needs Node 22.13 or later, or an open database of better-sqlite3')
  try {
    if (path.startsWith('file:') && !supportsUris(sqlite)) {
      throw new Error('file: URIs need a later version of Node.js; write the path of the file')
    }
    createFile(database, migrate)
    return new sqlite.DatabaseSync(path)
  } catch (error) {
    throw explainOpening(error, path, database.file)
  }
}
