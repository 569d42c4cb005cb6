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

export function isBusy(error: unknown): boolean {
  return transientCode(error) === 'SQLITE_BUSY'
}

/** Whether a constraint or trigger of the host refuses a plant, which says nothing of others. */
export function isRefused(error: unknown): boolean {
  return codeIn(new Map([[19, 'SQLITE_CONSTRAINT']]), error) !== undefined
}

function transientCode(error: unknown): string | undefined {
  return codeIn(TRANSIENT, error)
}

function codeIn(codes: ReadonlyMap<number, string>, error: unknown): string | undefined {
  const { errcode, code } = error as { readonly errcode?: number; readonly code?: string }
  // node:sqlite gives the number of the extended code, whose last byte is the code; better-sqlite3 gives its name.
  if (errcode !== undefined) return codes.get(errcode & 0xff)
  return [...codes.values()].find((name) => code?.startsWith(name))
}

/** The error that the caller of the store gets: it names the file, and says whether trying again may help. */
export function explain(error: unknown, file: string): Error {
  if (error instanceof StoreUnavailableError) return error
  const Kind = transientCode(error) === undefined ? Error : StoreUnavailableError
  return new Kind(messageOf(error, file), { cause: error })
}

/** Unless the file was locked, the log may hold the transaction, and a restart find it: the outcome is unknown. */
export function explainCommit(error: unknown, file: string): unknown {
  if (isBusy(error) || transientCode(error) === undefined) return error
  return new StoreUnavailableError(messageOf(error, file), { cause: error, isOutcomeUnknown: true })
}

/** The same for an error of the start: a file that cannot be made will not appear. */
export function explainOpening(error: unknown, file: string): Error {
  return transientCode(error) === 'SQLITE_CANTOPEN'
    ? new Error(messageOf(error, file), { cause: error })
    : explain(error, file)
}

function messageOf(error: unknown, file: string): string {
  return `SQLite database ${file}: ${(error as Error).message}`
}
