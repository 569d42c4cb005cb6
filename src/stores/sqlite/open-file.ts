import { isBuiltin } from 'node:module'
import process from 'node:process'
import { explainOpening } from './errors.ts'
import { pathOf, type SqliteHandle } from './handle.ts'
import { checkLog } from './left-log.ts'

/** How {@link openFile} opens a file. */
export interface OpenOptions {
  /** How long to wait while another process has the file locked. */
  readonly busyTimeoutMs: number
  /** Whether the file and the table are made if there are none. */
  readonly migrate: boolean
}

/** @throws Error if the file cannot be opened, or the log beside it belongs to another one */
export function openFile(path: string, options: OpenOptions): SqliteHandle {
  if (!isBuiltin('node:sqlite')) {
    const advice = 'use Node.js 22.13 or later, or pass a database of better-sqlite3'
    throw new Error(`SQLite database ${path}: this Node.js has no node:sqlite; ${advice}`)
  }
  const { DatabaseSync } = process.getBuiltinModule('node:sqlite')
  try {
    lookInto(path, () => new DatabaseSync(path, { readOnly: true }), options)
    return new DatabaseSync(path)
  } catch (error) {
    throw explainOpening(error, path)
  }
}

/**
 * Looks into a file that is there, and checks its log. It is opened only to be read: if a connection that may write is
 * closed, it brings the log into the file, whether it fits or not.
 */
function lookInto(path: string, open: () => SqliteHandle, { busyTimeoutMs, migrate }: OpenOptions): void {
  let handle
  try {
    handle = open()
  } catch {
    if (!migrate) throw new Error('there is no such file, and none is to be made')
    // SQLite would remove it.
    checkLog(path)
    return
  }
  try {
    handle.exec(`PRAGMA busy_timeout = ${busyTimeoutMs}`)
    checkLog(pathOf(handle), handle)
  } finally {
    handle.close()
  }
}
