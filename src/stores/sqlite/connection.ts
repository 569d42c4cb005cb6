import { resolve } from 'node:path'
import process from 'node:process'
import { StoreUnavailableError } from '../../plants/store.ts'
import { performance, sleep } from '../../timers.ts'
import { checkDatabaseFiles, createDatabaseFile, warnAboutPermissions } from './database-files.ts'
import { toStoreError, toCommitError, toOpenError, isBusy, isRejectedValue } from './errors.ts'
import { readPragma, checkDriver, firstRow, databasePathOf, prepareWithBigInts } from './handle.ts'
import type { SqliteHandle, SqliteStatement, SqliteValue } from './handle.ts'
import { parseSqlitePath } from './sqlite-path.ts'
import { FileWatcher } from './file-watcher.ts'

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

export const LOCK_RETRY_MS = 5

const UNRECOGNIZED_DATABASE_MESSAGE = 'it holds something other than plants; nothing was changed'

const collapseWhitespace = (sql: string): string => sql.replace(/\s+/g, ' ')

/** A connection to a file of plants, the same for every driver. Its errors name the file. */
export class SqliteConnection {
  /** Why a transaction has failed, unless it was for a lock or one plant. The queue removes it once writes succeed again. */
  writeError: unknown
  readonly #handle: SqliteHandle
  readonly #ownsHandle: boolean
  readonly #displayName: string
  readonly #options: ConnectionOptions
  /** Whether iterators of this driver throw the error of a query. */
  readonly #iteratorsThrow: boolean
  /** The number of failed reads. */
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
      // SQLite resolves symbolic links, and keeps the WAL beside the file that they point to.
      file = databasePathOf(this.#handle)
      if (typeof source !== 'string') this.#displayName = file || ':memory:'
      // Before any statement that reads the file.
      checkDatabaseFiles(file)
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
      this.#fileWatcher = this.#createFileWatcher(displayPath)
      // Windows has no such permissions.
      if (this.#fileWatcher !== undefined && process.platform !== 'win32') {
        warnAboutPermissions(file, (problem) => options.onWarning(`SQLite database ${this.#displayName}: ${problem}`))
      }
    } catch (error) {
      this.close()
      throw toOpenError(error, this.#displayName, file)
    }
  }

  /** A database in memory has no WAL, and no file that could be moved. */
  #createFileWatcher(displayPath: string | undefined): FileWatcher | undefined {
    const mode = readPragma(this.#handle, 'journal_mode')
    if (mode === 'memory') return undefined
    // A temporary file, which SQLite deletes, or one whose locks or shared memory the host has disabled.
    if (mode !== 'wal') throw new Error('it cannot have a write-ahead log (WAL)')
    return new FileWatcher(displayPath ?? databasePathOf(this.#handle), this.#handle, this.#options.onWarning)
  }

  prepare(sql: string): SqliteStatement {
    return prepareWithBigInts(this.#handle, sql)
  }

  /** Prepares a query. End the iteration, as a `for` loop does: an open read keeps SQLite from emptying its log. */
  prepareQuery(sql: string): (...values: SqliteValue[]) => Iterable<unknown> {
    let statement: SqliteStatement
    let seenFailedReadCount: number | undefined
    return (...values) => {
      // A statement of node:sqlite throws the error of a failed iteration once more when it is used again.
      if (seenFailedReadCount !== this.#failedReadCount) {
        seenFailedReadCount = this.#failedReadCount
        statement = this.prepare(sql)
        statement.setReturnArrays?.(true)
        statement.raw?.(true)
      }
      return this.#iteratorsThrow ? statement.iterate(...values) : statement.all(...values)
    }
  }

  /** Takes the write lock at once, so that only BEGIN can find it taken. */
  transaction<Result>(callback: () => Result): Result {
    this.#fileWatcher?.check()
    try {
      this.#begin.run()
      return this.#runAndCommit(callback)
    } catch (error) {
      // That of a commit stays until a commit succeeds.
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
        // SQLite has rolled back itself, as it does if a commit fails.
      }
      throw isCommitting ? toCommitError(error, this.#displayName) : error
    }
  }

  /** Waits for a lock with a timer: SQLite's own busy handler would stop the event loop. */
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

  /** Closes the database if it was opened here, unless that would harm what another process has written. */
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
      throw new Error(`its schema has version ${version}, and this plant-store knows version ${SCHEMA_VERSION}`)
    }
    // Writes nothing, but fails if the file cannot be written.
    this.#handle.exec('DELETE FROM main.plants WHERE false')
  }

  /** Makes a database of plants of an empty one, or of one that was restored from `.dump`, which lacks these numbers. */
  #initializeSchema(): void {
    const query = "SELECT group_concat(sql) FROM main.sqlite_schema WHERE substr(name, 1, 7) <> 'sqlite_'"
    const [schema] = firstRow(this.prepare(query).all()) as [string | null]
    if (schema === null) {
      if (!this.#options.migrate) throw new Error('it holds no plants, and is not to be made a file of plants')
      this.#handle.exec(CREATE_TABLE)
    } else if (collapseWhitespace(schema) !== collapseWhitespace(CREATE_TABLE)) {
      throw new Error(UNRECOGNIZED_DATABASE_MESSAGE)
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
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, LOCK_RETRY_MS)
    waitedMs += LOCK_RETRY_MS
  }
}

export interface ConnectionOptions {
  readonly busyTimeoutMs: number
  readonly migrate: boolean
  readonly onWarning: (message: string) => void
}

/** Node 22.13 takes a URI for the name of a file. It can't create one of this name, because the folder `file:` is missing. */
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
  if (sqlite === undefined) throw new Error('SQLite needs Node 22.13 or later, or an open database of better-sqlite3')
  try {
    if (path.startsWith('file:') && !supportsFileUris(sqlite)) {
      throw new Error('file: URIs need a later version of Node.js; write the path of the file')
    }
    createDatabaseFile(parsedPath, migrate)
    return new sqlite.DatabaseSync(path)
  } catch (error) {
    throw toOpenError(error, path, parsedPath.file)
  }
}
