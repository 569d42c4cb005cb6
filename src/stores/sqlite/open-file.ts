import { closeSync, existsSync, openSync, statSync } from 'node:fs'
import process from 'node:process'
import { explainOpening } from './errors.ts'
import type { SqliteHandle } from './handle.ts'

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
