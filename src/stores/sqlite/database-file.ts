import { accessSync, closeSync, constants, openSync, realpathSync, statSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import process from 'node:process'
import type { DatabaseSync } from 'node:sqlite'
import { StoreUnavailableError } from '../../plants/store.ts'
import { COLUMNS } from '../rows.ts'

/**
 * The changes of the schema, in order; `user_version` is the number of those that a file has. Entries are only ever
 * added. Processes of the previous version keep using the file, so a new column must be nullable or have a default.
 */
export const MIGRATIONS: readonly string[] = [
  `CREATE TABLE plants (
    owner TEXT NOT NULL,
    id INTEGER NOT NULL,
    name TEXT NOT NULL,
    tag TEXT,
    PRIMARY KEY (owner, id)
  ) STRICT, WITHOUT ROWID`,
]

/** Writes 0x504c4e54, "PLNT" in ASCII, to the header of the file (sqlite.org/fileformat.html section 1.3.17). */
export const SET_APPLICATION_ID = 'PRAGMA application_id = 1347178068'

/** Primary result codes (sqlite.org/rescode.html). */
export const [ERROR, BUSY, FULL, TOOBIG, CONSTRAINT] = [1, 5, 13, 18, 19] as const
const [PERM, LOCKED, NOMEM, READONLY, IOERR, CANTOPEN, PROTOCOL] = [3, 6, 7, 8, 10, 14, 15] as const

/** `node:sqlite` reports the extended result code as `errcode`. The primary code is its last byte. */
export function hasResultCode(error: unknown, ...codes: number[]): boolean {
  const { errcode } = (error ?? {}) as { errcode?: number }
  return errcode !== undefined && codes.includes(errcode & 0xff)
}

export interface DatabaseFileOptions {
  readonly busyTimeoutMs: number
  readonly migrate: boolean
}

/** An open database, and what concerns its file. */
export interface DatabaseFile {
  readonly database: DatabaseSync
  /** @throws StoreUnavailableError if the path no longer refers to the open file, which nobody would find again */
  readonly checkPath: () => void
  /** Names the file in the message of an error. Returns a StoreUnavailableError if retrying can help. */
  readonly toStoreError: (error: unknown, isOutcomeUnknown?: boolean) => Error
}

/**
 * @param prepare called with the open file; its errors are reported like those of opening
 * @throws Error if the file can't be used, or StoreUnavailableError if it's locked; the file is left unchanged
 */
export function openDatabaseFile<T>(
  path: string,
  options: DatabaseFileOptions,
  prepare: (file: DatabaseFile) => T,
  migrations: readonly string[] = MIGRATIONS,
): T {
  const sqlite = process.getBuiltinModule('node:sqlite') as typeof import('node:sqlite') | undefined
  if (sqlite === undefined) throw new Error('SQLite needs Node 22.13 or later')
  if (typeof path !== 'string' || /^$|^(?:\w{2,})?:|\p{Cc}|^\s|\s$/u.test(path)) {
    throw new TypeError(`the SQLite path ${JSON.stringify(path)} looks like a mistake; use a path such as "plants.db"`)
  }
  const absolutePath = resolve(path)
  const toStoreError = (cause: unknown, isOutcomeUnknown = false): Error => {
    const message = `SQLite database ${path}: ${(cause as Error).message}`
    return hasResultCode(cause, BUSY, FULL, PERM, READONLY, CANTOPEN, LOCKED, NOMEM, IOERR, PROTOCOL)
      ? new StoreUnavailableError(message, { cause, isOutcomeUnknown })
      : new Error(message, { cause })
  }

  let database: DatabaseSync | undefined
  try {
    prepareFile(absolutePath, options.migrate)
    database = openDatabase(sqlite, absolutePath, options, migrations)
    const openedInode = inodeOf(absolutePath)
    function checkPath(): void {
      if (inodeOf(absolutePath) === openedInode) return
      throw new StoreUnavailableError(`SQLite database ${path}: the file was moved, deleted or replaced`)
    }
    return prepare({ database, toStoreError, checkPath })
  } catch (cause) {
    database?.close()
    let hint: string | undefined
    if (hasResultCode(cause, PERM, READONLY, CANTOPEN)) hint = findAccessProblem(absolutePath)
    if (hasResultCode(cause, ERROR)) hint = `the table plants needs the columns ${COLUMNS} and the key (owner, id)`
    const error = toStoreError(cause)
    throw hint === undefined ? error : new Error(`${error.message}; ${hint}`, { cause })
  }
}

/** Creates a missing file, readable by this user only. SQLite gives the WAL the same permissions. */
function prepareFile(path: string, migrate: boolean): void {
  const stats = statSync(path, { throwIfNoEntry: false })
  // SQLite would wait forever for the writer of a FIFO.
  if (stats?.isFile() === false) throw new Error('not a regular file')
  // The WAL is next to the file that a symbolic link points to. It's read first: a process that is creating the database
  // writes the database file first.
  if (sizeOf(`${stats === undefined ? path : realpathSync(path)}-wal`) > 0 && sizeOf(path) === 0) {
    throw new Error('the file is missing or empty, but its WAL (-wal), which SQLite would delete, can contain plants')
  }
  // An existing file isn't opened here, because closing it would release the locks that this process has on it.
  if (stats !== undefined) return
  if (!migrate) throw new Error('the file does not exist and migrations are disabled')
  closeSync(openSync(path, 'a', 0o600))
}

const sizeOf = (path: string): number => statSync(path, { throwIfNoEntry: false })?.size ?? 0

const inodeOf = (path: string): bigint | undefined => statSync(path, { bigint: true, throwIfNoEntry: false })?.ino

function openDatabase(
  { DatabaseSync }: typeof import('node:sqlite'),
  path: string,
  { busyTimeoutMs, migrate }: DatabaseFileOptions,
  migrations: readonly string[],
): DatabaseSync {
  const database = new DatabaseSync(path)
  try {
    // Commits must survive a power failure; macOS needs `fullfsync` for that. After a reset, the WAL keeps 16 MiB.
    database.exec(`PRAGMA busy_timeout = ${busyTimeoutMs}; PRAGMA synchronous = FULL; PRAGMA fullfsync = ON;
      PRAGMA journal_size_limit = ${16 * 2 ** 20}; BEGIN IMMEDIATE`)
    migrateSchema(database, migrations, migrate)
    database.exec('COMMIT')
    // Changes the file, so this comes after the check that it is a plant-store database.
    const mode = database.prepare('PRAGMA journal_mode = WAL').get()!['journal_mode']
    if (mode !== 'wal') throw new Error(`SQLite can't use its WAL mode here (the journal mode is ${String(mode)})`)
    return database
  } catch (error) {
    database.close()
    throw error
  }
}

function migrateSchema(database: DatabaseSync, migrations: readonly string[], migrate: boolean): void {
  const readNumber = (sql: string): number => Number(Object.values(database.prepare(sql).get()!)[0])
  const applicationId = readNumber('PRAGMA application_id')
  const version = readNumber('PRAGMA user_version')
  const isNew = applicationId === 0 && version === 0 && readNumber('SELECT count(*) FROM sqlite_schema') === 0
  if (!isNew && SET_APPLICATION_ID !== `PRAGMA application_id = ${applicationId}`) {
    throw new Error('not a plant-store database; it was left unchanged')
  }
  if (version >= migrations.length) return
  if (!migrate) {
    const problem = isNew ? 'the database is empty' : `its schema version is ${version}, not ${migrations.length}`
    throw new Error(`${problem}, and migrations are disabled`)
  }
  for (const sql of migrations.slice(version)) database.exec(sql)
  database.exec(`${SET_APPLICATION_ID}; PRAGMA user_version = ${migrations.length}`)
}

/** SQLite doesn't report which file it couldn't access. */
function findAccessProblem(path: string): string | undefined {
  const { R_OK, W_OK, X_OK } = constants
  for (const file of [dirname(path), path, `${path}-wal`, `${path}-shm`]) {
    try {
      accessSync(file, file === dirname(path) ? W_OK | X_OK : R_OK | W_OK)
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') return (error as Error).message
    }
  }
  return undefined
}
