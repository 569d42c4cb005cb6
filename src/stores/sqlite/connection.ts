import { resolve } from 'node:path'
import process from 'node:process'
import { StoreUnavailableError } from '../../legacy/plants/store.ts'
import { performance, sleep } from '../../legacy/timers.ts'
import { checkDatabaseFiles, createDatabaseFile, warnAboutPermissions } from './database-files.ts'
import { toStoreError, toCommitError, toOpenError, isBusy, isRejectedValue } from './errors.ts'
import { readPragma, checkDriver, firstRow, databasePathOf, prepareWithBigInts } from './handle.ts'
import type { SqliteHandle, SqliteStatement, SqliteValue } from './handle.ts'
import { parseSqlitePath } from './sqlite-path.ts'
import { FileWatcher } from './file-watcher.ts'

/**
 * "PLNT" in ASCII. The header of the database file contains this number (sqlite.org/fileformat.html section 1.3.17).
 */
const APPLICATION_ID = 0x504c4e54
const SCHEMA_VERSION = 1

const CREATE_TABLE = `CREATE TABLE plants (
    owner TEXT NOT NULL,
    id INTEGER NOT NULL,
    name TEXT NOT NULL,
    tag TEXT,
    PRIMARY KEY (owner, id)
  ) STRICT, WITHOUT ROWID`

/** How long to wait before another attempt to lock the database. */
export const LOCK_RETRY_MS = 5

const UNRECOGNIZED_DATABASE_MESSAGE = 'not a plant-store database; it was left unchanged'

const collapseWhitespace = (sql: string): string => sql.replace(/\s+/g, ' ')

/** A connection to a plant database, regardless of the driver. Its errors contain the name of the database file. */
export class SqliteConnection {
  /**
   * The error of the last failed transaction. Failures caused by a locked database or by a single rejected plant aren't
   * recorded. Once a commit has failed, later errors don't overwrite its error. The write queue clears this when a
   * probe write succeeds.
   */
  writeError: unknown
  readonly #handle: SqliteHandle
  readonly #ownsHandle: boolean
  readonly #displayName: string
  readonly #options: ConnectionOptions
  /** Whether the driver's iterators throw when a query fails. Deno's iterators just end. */
  readonly #iteratorsThrow: boolean
  #failedReadCount = 0
  #fileWatcher: FileWatcher | undefined
  readonly #begin: SqliteStatement
  readonly #commit: SqliteStatement
  readonly #rollback: SqliteStatement

  constructor(source: string | SqliteHandle, options: ConnectionOptions) {
    this.#options = options
    this.#ownsHandle = typeof source === 'string'
    this.#displayName = typeof source === 'string' ? source : 'handle'
    let file = typeof source === 'string' ? parseSqlitePath(source).file : undefined
    const displayPath = file && resolve(file)
    this.#handle = typeof source === 'string' ? openDatabase(source, options) : source
    try {
      this.#handle.exec('PRAGMA busy_timeout = 0')
      // SQLite resolves symbolic links: the WAL is next to the file that the link points to.
      file = databasePathOf(this.#handle)
      if (typeof source !== 'string') this.#displayName = file || ':memory:'
      // This check must come before the first statement that reads the file.
      checkDatabaseFiles(file)
      this.#iteratorsThrow = checkDriver(this.#handle)
      // Throws if the application passed a handle with an open transaction.
      this.#handle.exec('BEGIN; ROLLBACK')
      // Commits must survive a power failure. Some SQLite builds open WAL databases with `synchronous=NORMAL`, and
      // macOS needs `fullfsync`.
      this.#handle.exec('PRAGMA main.synchronous = FULL; PRAGMA fullfsync = ON')
      this.#begin = this.prepare('BEGIN IMMEDIATE')
      this.#commit = this.prepare('COMMIT')
      this.#rollback = this.prepare('ROLLBACK')
      this.transaction(() => this.#checkSchema())
      // After a reset, the WAL keeps at most this much disk space. Freeing all of it would slow down the next writes.
      this.#handle.exec(`PRAGMA main.journal_mode = WAL; PRAGMA main.journal_size_limit = ${16 * 2 ** 20}`)
      this.#fileWatcher = this.#createFileWatcher(displayPath)
      // Windows doesn't have POSIX permissions.
      if (this.#fileWatcher !== undefined && process.platform !== 'win32') {
        warnAboutPermissions(file, (problem) => options.onWarning(`SQLite database ${this.#displayName}: ${problem}`))
      }
    } catch (error) {
      this.close()
      throw toOpenError(error, this.#displayName, file)
    }
  }

  /** @returns undefined for an in-memory database, which has no files */
  #createFileWatcher(displayPath: string | undefined): FileWatcher | undefined {
    const mode = readPragma(this.#handle, 'journal_mode')
    if (mode === 'memory') return undefined
    // SQLite refuses WAL mode for temporary databases, and for a `file:` URI that disables locks or shared memory.
    if (mode !== 'wal') throw new Error('WAL mode is required, but SQLite cannot enable it for this database')
    return new FileWatcher(displayPath ?? databasePathOf(this.#handle), this.#handle, this.#options.onWarning)
  }

  prepare(sql: string): SqliteStatement {
    return prepareWithBigInts(this.#handle, sql)
  }

  /**
   * Prepares a query. Callers must finish or close the iterator, as a `for` loop does: an unfinished read transaction
   * keeps SQLite from resetting the WAL.
   */
  prepareQuery(sql: string): (...values: SqliteValue[]) => Iterable<unknown> {
    let statement: SqliteStatement
    let seenFailedReadCount: number | undefined
    return (...values) => {
      // After an iteration has failed, a node:sqlite statement throws the same error again the next time it's used.
      if (seenFailedReadCount !== this.#failedReadCount) {
        seenFailedReadCount = this.#failedReadCount
        statement = this.prepare(sql)
        statement.setReturnArrays?.(true)
        statement.raw?.(true)
      }
      return this.#iteratorsThrow ? statement.iterate(...values) : statement.all(...values)
    }
  }

  /**
   * Runs a transaction. The transaction takes the write lock at the start, so only BEGIN can fail because the database
   * is locked.
   */
  transaction<Result>(callback: () => Result): Result {
    this.#fileWatcher?.check()
    try {
      this.#begin.run()
      return this.#runAndCommit(callback)
    } catch (error) {
      // Keep the error of a failed commit (StoreUnavailableError) until a commit succeeds.
      const isNewWriteError =
        !isBusy(error) && !isRejectedValue(error) && !(this.writeError instanceof StoreUnavailableError)
      if (isNewWriteError) this.writeError = error
      throw error
    }
  }

  #runAndCommit<Result>(callback: () => Result): Result {
    let isCommitting = false
    try {
      const result = callback()
      isCommitting = true
      this.#commit.run()
      return result
    } catch (error) {
      try {
        this.#rollback.run()
      } catch {
        // There is no transaction anymore: SQLite rolls back on its own after some errors, such as a failed commit.
      }
      throw isCommitting ? toCommitError(error, this.#displayName) : error
    }
  }

  /**
   * Calls a function, and repeats the call while the database is locked, for up to `timeoutMs`. Waits with a timer in
   * between, because SQLite's own busy handler would block the event loop.
   */
  async retryWhileBusy<Result>(
    callback: () => Result,
    timeoutMs: number = this.#options.busyTimeoutMs,
  ): Promise<Result> {
    const deadline = performance.now() + timeoutMs
    for (;;) {
      try {
        this.#fileWatcher?.checkBeforeRead()
        return callback()
      } catch (error) {
        this.#failedReadCount++
        if (!isBusy(error) || performance.now() >= deadline) throw this.toStoreError(error)
      }
      await sleep(LOCK_RETRY_MS)
    }
  }

  get walBytes(): number {
    return this.#fileWatcher?.walBytes ?? 0
  }

  toStoreError(error: unknown): Error {
    return toStoreError(error, this.#displayName)
  }

  /** Closes the database, unless the application opened it or closing would delete the WAL of another process. */
  close(): void {
    if (this.#fileWatcher?.isSharedMemoryReplaced === true) return
    this.#fileWatcher = undefined
    if (this.#ownsHandle) this.#handle.close()
  }

  #checkSchema(): void {
    const applicationId = Number(readPragma(this.#handle, 'application_id'))
    const version = Number(readPragma(this.#handle, 'user_version'))
    if (applicationId === 0 && version === 0) {
      this.#initializeSchema()
    } else if (applicationId !== APPLICATION_ID) {
      throw new Error(UNRECOGNIZED_DATABASE_MESSAGE)
    } else if (version !== SCHEMA_VERSION) {
      throw new Error(`schema version ${version} is not supported; this version of plant-store uses ${SCHEMA_VERSION}`)
    }
    // Changes nothing, but fails if the file is read-only.
    this.#handle.exec('DELETE FROM main.plants WHERE false')
  }

  /**
   * Creates the table in an empty database. A database restored from `.dump` has the table, but lacks the application
   * ID and the schema version.
   */
  #initializeSchema(): void {
    const query = "SELECT group_concat(sql) FROM main.sqlite_schema WHERE substr(name, 1, 7) <> 'sqlite_'"
    const [schema] = firstRow(this.prepare(query).all()) as [string | null]
    if (schema === null) {
      if (!this.#options.migrate) throw new Error('the database is empty and migrations are disabled')
      this.#handle.exec(CREATE_TABLE)
    } else if (collapseWhitespace(schema) !== collapseWhitespace(CREATE_TABLE)) {
      throw new Error(UNRECOGNIZED_DATABASE_MESSAGE)
    }
    this.#handle.exec(`PRAGMA main.application_id = ${APPLICATION_ID}; PRAGMA main.user_version = ${SCHEMA_VERSION}`)
  }
}

/**
 * Opens a database. Blocks the thread for up to `busyTimeoutMs` while the database is locked: SQLite's own busy handler
 * doesn't wait for every lock that opening a database takes.
 */
export function openConnection(source: string | SqliteHandle, options: ConnectionOptions): SqliteConnection {
  let waitedMs = 0
  for (;;) {
    try {
      return new SqliteConnection(source, options)
    } catch (error) {
      if (!isBusy((error as Error).cause) || waitedMs >= options.busyTimeoutMs) throw error
    }
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, LOCK_RETRY_MS)
    waitedMs += LOCK_RETRY_MS
  }
}

export interface ConnectionOptions {
  readonly busyTimeoutMs: number
  readonly migrate: boolean
  readonly onWarning: (message: string) => void
}

/**
 * Whether this version of Node accepts `file:` URIs. Node 22.13 treats the URI as a file name, and can't open that file
 * because there's no directory named `file:`.
 */
function supportsFileUris({ DatabaseSync }: typeof import('node:sqlite')): boolean {
  try {
    new DatabaseSync('file:/plants?mode=memory').close()
    return true
  } catch {
    return false
  }
}

function openDatabase(path: string, { migrate }: ConnectionOptions): SqliteHandle {
  const parsedPath = parseSqlitePath(path)
  const sqlite = process.getBuiltinModule('node:sqlite') as typeof import('node:sqlite') | undefined
  if (sqlite === undefined)
    throw new Error('SQLite needs Node 22.13 or later; with better-sqlite3, pass an open database instead of a path')
  try {
    if (path.startsWith('file:') && !supportsFileUris(sqlite)) {
      throw new Error('file: URIs need a later version of Node.js; use a file path instead')
    }
    createDatabaseFile(parsedPath, migrate)
    return new sqlite.DatabaseSync(path)
  } catch (error) {
    throw toOpenError(error, path, parsedPath.file)
  }
}
