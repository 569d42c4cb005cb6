import { StoreUnavailableError } from '../../plants/store.ts'

/** The result codes after which trying again may help (sqlite.org/rescode.html). */
const TRANSIENT = new Map([
  [5, 'SQLITE_BUSY'],
  [6, 'SQLITE_LOCKED'],
  [7, 'SQLITE_NOMEM'],
  [10, 'SQLITE_IOERR'],
  [13, 'SQLITE_FULL'],
  [14, 'SQLITE_CANTOPEN'],
])

/** Whether another process has the file locked. */
export function isBusy(error: unknown): boolean {
  return transientCode(error) === 'SQLITE_BUSY'
}

function transientCode(error: unknown): string | undefined {
  const { errcode, code } = error as { readonly errcode?: number; readonly code?: string }
  // node:sqlite gives the number of the extended code, whose last byte is the code; better-sqlite3 gives its name.
  if (errcode !== undefined) return TRANSIENT.get(errcode & 0xff)
  return [...TRANSIENT.values()].find((name) => code?.startsWith(name))
}

/** What to tell the caller of the store: the error with the name of the file, as worth trying again if it is. */
export function explain(error: unknown, file: string): Error {
  const message = `SQLite database ${file}: ${(error as Error).message}`
  return transientCode(error) === undefined
    ? new Error(message, { cause: error })
    : new StoreUnavailableError(message, { cause: error })
}
