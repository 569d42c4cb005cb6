import { StoreUnavailableError } from '../../legacy/plants/store.ts'
import { findAccessError } from './database-files.ts'

/** SQLite result codes (sqlite.org/rescode.html). All errors except the last two might be temporary. */
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
  // node:sqlite reports the extended result code as a number, with the primary code in the last byte. better-sqlite3
  // reports the name of the extended code, which begins with the name of the primary code.
  if (errcode !== undefined) return RESULT_CODES.get(errcode & 0xff)
  return [...RESULT_CODES.values()].find((name) => code?.startsWith(name))
}

export const isBusy = (error: unknown): boolean => resultCodeOf(error) === 'SQLITE_BUSY'

/** Whether a constraint, a trigger or a size limit rejected this plant. Other plants aren't affected. */
export const isRejectedValue = (error: unknown): boolean => /_(?:CONSTRAINT|TOOBIG)$/.test(resultCodeOf(error) ?? '')

const isTransient = (error: unknown): boolean => resultCodeOf(error) !== undefined && !isRejectedValue(error)
const messageOf = (error: unknown, file: string): string => `SQLite database ${file}: ${(error as Error).message}`

/** Adds the database's name to the message of a SQLite error. @returns StoreUnavailableError if retrying can help */
export function toStoreError(error: unknown, file: string): Error {
  if (error instanceof StoreUnavailableError) return error
  const ErrorClass = isTransient(error) ? StoreUnavailableError : Error
  return new ErrorClass(messageOf(error, file), { cause: error })
}

/**
 * Converts an error from a COMMIT. Unless the database was locked, the outcome is unknown: the WAL might already
 * contain the transaction, and a restart would recover it.
 */
export function toCommitError(error: unknown, file: string): unknown {
  if (isBusy(error) || !isTransient(error)) return error
  return new StoreUnavailableError(messageOf(error, file), { cause: error, isOutcomeUnknown: true })
}

/**
 * Like {@link toStoreError}, but for errors while a database is being opened. In that case, missing permissions are a
 * permanent error, and the message includes the file that can't be accessed.
 * @param file the name of the database in the message
 * @param path path of the database file; empty or undefined for an in-memory database
 */
export function toOpenError(error: unknown, file: string, path: string | undefined): Error {
  if (!/_(?:PERM|READONLY|CANTOPEN)$/.test(resultCodeOf(error) ?? '')) return toStoreError(error, file)
  const messages = [messageOf(error, file), path && findAccessError(path)]
  return new Error(messages.filter(Boolean).join('; '), { cause: error })
}
