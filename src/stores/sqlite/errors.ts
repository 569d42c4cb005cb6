import { StoreUnavailableError } from '../../plants/store.ts'
import { findAccessError } from './database-files.ts'

/** Result codes (sqlite.org/rescode.html). After all but the last two, trying again may help. */
const RESULT_CODES = new Map([
  [3, 'SQLITE_PERM'],
  [5, 'SQLITE_BUSY'],
  [6, 'SQLITE_LOCKED'],
  [7, 'SQLITE_NOMEM'],
  [8, 'SQLITE_READONLY'],
  [10, 'SQLITE_IOERR'],
  [13, 'SQLITE_FULL'],
  [14, 'SQLITE_CANTOPEN'],
  [15, 'SQLITE_PROTOCOL'],
  [18, 'SQLITE_TOOBIG'],
  [19, 'SQLITE_CONSTRAINT'],
])

function resultCodeOf(error: unknown): string | undefined {
  const { errcode, code } = (error ?? {}) as { readonly errcode?: number; readonly code?: string }
  // node:sqlite gives the number of the extended code, whose last byte is the code; better-sqlite3 gives its name.
  if (errcode !== undefined) return RESULT_CODES.get(errcode & 0xff)
  return [...RESULT_CODES.values()].find((name) => code?.startsWith(name))
}

export const isBusy = (error: unknown): boolean => resultCodeOf(error) === 'SQLITE_BUSY'

/** Whether a constraint, a trigger or a limit of the host rejects a plant, which doesn't affect other plants. */
export const isRejectedValue = (error: unknown): boolean => /_(?:CONSTRAINT|TOOBIG)$/.test(resultCodeOf(error) ?? '')

const isTransient = (error: unknown): boolean => resultCodeOf(error) !== undefined && !isRejectedValue(error)
const messageOf = (error: unknown, file: string): string => `SQLite database ${file}: ${(error as Error).message}`

/** The error that the caller of the store gets: it names the file, and says whether trying again may help. */
export function toStoreError(error: unknown, file: string): Error {
  if (error instanceof StoreUnavailableError) return error
  const ErrorClass = isTransient(error) ? StoreUnavailableError : Error
  return new ErrorClass(messageOf(error, file), { cause: error })
}

/** Unless the file was locked, the log may hold the transaction, and a restart find it: the outcome is unknown. */
export function toCommitError(error: unknown, file: string): unknown {
  if (isBusy(error) || !isTransient(error)) return error
  return new StoreUnavailableError(messageOf(error, file), { cause: error, isOutcomeUnknown: true })
}

/**
 * The same for an error at startup: a file that can't be opened or written then stays so.
 * @param path the database file; empty or undefined if there is none
 */
export function toOpenError(error: unknown, file: string, path: string | undefined): Error {
  if (!/_(?:PERM|READONLY|CANTOPEN)$/.test(resultCodeOf(error) ?? '')) return toStoreError(error, file)
  return new Error([messageOf(error, file), ...(path ? findAccessError(path) : [])].join('; '), { cause: error })
}
