import process from 'node:process'
import { explainOpening } from './errors.ts'
import { pathOf, type SqliteHandle } from './handle.ts'
import { checkLog } from './left-log.ts'

/** How a file is opened and used. */
export interface ConnectionOptions {
  /** How long to wait while another process has the file locked. */
  readonly busyTimeoutMs: number
  /** Whether the file and the table are made if there are none. */
  readonly migrate: boolean
  /** Gets a line that an operator should read. */
  readonly onWarning: (message: string) => void
}

/**
 * Opens a file whose log has been checked. For that it is opened only for reading: when a connection that may write is
 * closed, SQLite brings the log into the file, whether it fits or not.
 * @throws Error if the file cannot be opened, or the log beside it belongs to another one
 */
export function openFile(path: string, options: ConnectionOptions): SqliteHandle {
  const sqlite = process.getBuiltinModule('node:sqlite') as typeof import('node:sqlite') | undefined
  if (sqlite === undefined) throw new Error('SQLite needs Node 22.13 or later, or an open database of better-sqlite3')
  try {
    checkFile(path, () => new sqlite.DatabaseSync(path, { readOnly: true }), options)
    return new sqlite.DatabaseSync(path)
  } catch (error) {
    throw explainOpening(error, path)
  }
}

function checkFile(path: string, open: () => SqliteHandle, { busyTimeoutMs, migrate }: ConnectionOptions): void {
  let reader
  try {
    reader = open()
  } catch {
    if (!migrate) throw new Error('there is no such file, and none is to be made')
    // SQLite would remove a log that has no file.
    return checkLog(path)
  }
  try {
    reader.exec(`PRAGMA busy_timeout = ${busyTimeoutMs}`)
    checkLog(pathOf(reader), reader)
  } finally {
    reader.close()
  }
}
