import { isError } from '../../legacy/option-checks.ts'

// These patterns match SQLSTATEs or their classes (postgresql.org/docs/current/errcodes-appendix.html). Keep the table
// for operators in docs/postgres.md in sync.

/**
 * Errors for which retrying may help: the connection failed (08), the transaction was rolled back (40) or had been
 * aborted earlier (25P02), the server ran out of a resource (53), canceled the statement, or is stopping or starting
 * (57), the operating system reported an error (58), the snapshot is too old (72), the server is read-only (25006), one
 * of the server's timeouts expired (25P03, 25P04, 55P03), or another session is using the object (55006).
 */
const TRANSIENT_STATES = /^(?:08|40|53|57|58|72|25006|25P0[234]|55006|55P03)/

/**
 * Errors after which the statement might have been committed: the session ended, the server doesn't know the outcome
 * (40003), or it reported an I/O error (58030), which may happen during a commit. A server that is starting (57P03) and
 * one that `postgres_fdw` can't connect to (08001) are excluded, because they haven't executed the statement.
 */
const OUTCOME_UNKNOWN_STATES = /^(?:08(?!001)|57P(?!03)|25P0[34]|40003|58030)/

/**
 * Errors after which the connection can't be used: the session ended, the server is starting or read-only, or an
 * earlier error has aborted the transaction.
 */
const UNUSABLE_SESSION_STATES = /^(?:08(?!001)|57P|25006|25P0[234]|40003)/

/** A timeout expired before the server responded, or before the pool provided a connection. */
export class NoResponseError extends Error {
  constructor(ms: number, expected = 'response') {
    super(`No ${expected} within ${ms} ms.`)
  }
}

/**
 * The driver couldn't parse a response. The connection is unusable, and retrying the statement would probably fail
 * again.
 */
export class UnreadableResponseError extends Error {
  constructor(cause: unknown) {
    super('The driver could not parse a response from the database server.', { cause })
  }
}

/**
 * A statement was canceled, but it might have been committed, on this server or on another one. That commit might still
 * be lost, completely or in part.
 */
export class UnconfirmedCommitError extends Error {
  constructor(message = 'The transaction was committed, but the synchronous standby has not confirmed it.') {
    super(message)
  }
}

/** The database can't be used until an operator changes the database or the table. Retrying doesn't help. */
export class UnsuitableDatabaseError extends Error {}

// Bundlers may shorten class names, so set the names explicitly. An assignment would throw if `Error.prototype` is
// frozen.
for (const [name, { prototype }] of Object.entries({
  NoResponseError,
  UnreadableResponseError,
  UnconfirmedCommitError,
  UnsuitableDatabaseError,
})) {
  Object.defineProperty(prototype, 'name', { value: name, writable: true, configurable: true })
}

type ErrorPredicate = (error: unknown) => boolean

const matchesSqlState =
  (pattern: RegExp): ErrorPredicate =>
  (error) =>
    pattern.test(sqlStateOf(error) ?? '')

export function isTransient(error: unknown): boolean {
  if (isServerError(error))
    return matchesSqlState(TRANSIENT_STATES)(error) || endsSession(error) || isOutOfTransactionIds(error)
  return isError(error) && !isProgrammingError(error) && !(error instanceof UnreadableResponseError)
}

/** Whether an error is due to a bug. All other errors without a SQLSTATE are treated as connection errors. */
export const isProgrammingError: ErrorPredicate = (error) => isError(error) && /^(?:Type|Range)Error$/.test(error.name)

/** Whether a timeout expired. The timeout errors of `pg` pools can only be recognized by their message. */
export const isTimeout = (error: unknown): boolean =>
  error instanceof NoResponseError || (!isServerError(error) && /time-?out/i.test(String(error)))

/** Whether the server sent this error. If so, it has stopped executing the statement. */
export const isServerError: ErrorPredicate = (error) => sqlStateOf(error) !== undefined

export const isOutcomeUnknown: ErrorPredicate = (error) =>
  !isServerError(error) || matchesSqlState(OUTCOME_UNKNOWN_STATES)(error) || endsSession(error)

export function breaksConnection(error: unknown): boolean {
  if (!isServerError(error)) return !(error instanceof UnconfirmedCommitError)
  return matchesSqlState(UNUSABLE_SESSION_STATES)(error) || endsSession(error) || isPlanStale(error)
}

/** Whether the server or a pooler closes the session after this error. Poolers use SQLSTATEs of any class for that. */
const endsSession: ErrorPredicate = (error) => /^(?:FATAL|PANIC)$/.test((error as { severity?: string }).severity ?? '')

/**
 * Whether the server has no transaction IDs or multixact IDs left, so that it rejects writes until a VACUUM has run.
 */
const isOutOfTransactionIds: ErrorPredicate = (error) =>
  matchesSqlState(/^54000/)(error) && routineOf(error).startsWith('GetNew')

/**
 * Whether the statement failed because the table was altered after it was prepared. If so, the statement wasn't
 * executed.
 */
export const isPlanStale = (error: unknown): boolean =>
  matchesSqlState(/^0A000/)(error) && routineOf(error) === 'RevalidateCachedQuery'

/**
 * Whether the error means that a pooler has switched to a session with other prepared statements. If so, the failed
 * statement wasn't executed.
 */
export const isPreparedStatementError: ErrorPredicate = matchesSqlState(/^(?:42P05|26000)/)
/** Whether the statement was rolled back because of a serialization failure or a deadlock, and can be retried. */
export const isConflict: ErrorPredicate = matchesSqlState(/^(?:40001|40P01)/)
/** Whether the statement was canceled. The server that reports this error has rolled it back. */
export const isCanceled: ErrorPredicate = matchesSqlState(/^57014/)
/** Whether the server rejected the values of a plant: because of a type, a constraint or the size. */
export const isRejectedValue: ErrorPredicate = (error) => matchesSqlState(/^2[23]/)(error) || isRowTooLarge(error)
/**
 * Whether a single plant in a batch might be the cause: its values, a row-level security policy, or the check option of
 * a view.
 */
export const isSinglePlantError: ErrorPredicate = (error) =>
  isRejectedValue(error) || (matchesSqlState(/^(?:44|42501)/)(error) && routineOf(error) === 'ExecWithCheckOptions')
/**
 * Whether a row is too large, either for an index (only with a long owner) or for a table that stores strings inline.
 * Checks the routine as well, because 54000 has many other causes.
 */
export const isRowTooLarge: ErrorPredicate = (error) =>
  matchesSqlState(/^54000/)(error) && ROW_TOO_LARGE_ROUTINES.test(routineOf(error))

/** The server's functions that build rows of a B-tree, GiST, GIN, BRIN or SP-GiST index, or of a table. */
const ROW_TOO_LARGE_ROUTINES =
  /^(?:_bt_check_third_page|index_form_tuple|GinFormTuple|brin_do|spgdo|RelationGetBufferForTuple)/

/** Returns the PostgreSQL function that reported an error. Unlike the message, its name is never translated. */
const routineOf = (error: unknown): string => (error as { routine?: string }).routine ?? ''

/**
 * Returns the SQLSTATE of an error that the server sent. Node's own codes, such as EPIPE, look like a SQLSTATE that a
 * trigger might raise. They are excluded unless the error has a `severity`, as server errors do.
 */
function sqlStateOf(error: unknown): string | undefined {
  if (!(isError(error) && 'code' in error && typeof error.code === 'string')) return undefined
  const pattern = 'severity' in error ? /^[0-9A-Z]{5}$/ : /^[0-9A-DF-Z][0-9A-Z]{4}$/
  return pattern.test(error.code) ? error.code : undefined
}
