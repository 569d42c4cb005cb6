import { isError } from '../../option-checks.ts'

// The patterns match SQLSTATEs, or their classes (postgresql.org/docs/current/errcodes-appendix.html).
// docs/postgres.md has the same lists for operators.

/**
 * Retrying can help: the connection failed (08), the transaction was rolled back (40) or found aborted (25P02), a
 * resource ran out (53), the server canceled the statement, stops or starts (57), its machine reported an error (58), its
 * snapshot is too old (72), it's read-only (25006), a timeout of its own passed (25P03, 25P04, 55P03), or another session
 * uses the object (55006).
 */
const TRANSIENT_STATES = /^(?:08|40|53|57|58|72|25006|25P0[234]|55006|55P03)/

/**
 * The statement may have been committed: the session ended, the server can't tell (40003), or it reported an I/O error
 * (58030), which a commit can meet too. A server that starts (57P03) hasn't run the statement, nor has one that
 * `postgres_fdw` can't reach (08001).
 */
const OUTCOME_UNKNOWN_STATES = /^(?:08(?!001)|57P(?!03)|25P0[34]|40003|58030)/

/** The session ended, or can't be used: the server starts or is read-only, or the transaction was aborted before. */
const UNUSABLE_SESSION_STATES = /^(?:08(?!001)|57P|25006|25P0[234]|40003)/

export class NoResponseError extends Error {
  constructor(ms: number, expected = 'answer') {
    super(`No ${expected} within ${ms} ms.`)
  }
}

/** The driver couldn't parse what the server sent. The connection is unusable, and the same statement may fail again. */
export class UnreadableResponseError extends Error {
  constructor(cause: unknown) {
    super('The driver could not parse a response of the database.', { cause })
  }
}

/** A statement was cancelled that may be committed, here or on another server: it may be lost, or kept in part. */
export class UnconfirmedCommitError extends Error {
  constructor(message = 'The statement was committed, but its standby has not confirmed it.') {
    super(message)
  }
}

/** A database cannot keep every plant, until somebody changes it. */
export class UnsuitableDatabaseError extends Error {}

// Not the names of the classes, which a bundler may shorten. An assignment would throw if `Error.prototype` is frozen.
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

/** Whether the code is wrong. All other errors without a SQLSTATE are taken for those of a connection. */
export const isProgrammingError: ErrorPredicate = (error) => isError(error) && /^(?:Type|Range)Error$/.test(error.name)

/** Whether the server said nothing for too long. A pool says so in words only. */
export const isTimeout = (error: unknown): boolean =>
  error instanceof NoResponseError || (!isServerError(error) && /time-?out/i.test(String(error)))

/** Whether the server sent this error: then it does nothing more about the statement. */
export const isServerError: ErrorPredicate = (error) => sqlStateOf(error) !== undefined

export const isOutcomeUnknown: ErrorPredicate = (error) =>
  !isServerError(error) || matchesSqlState(OUTCOME_UNKNOWN_STATES)(error) || endsSession(error)

export function breaksConnection(error: unknown): boolean {
  if (!isServerError(error)) return !(error instanceof UnconfirmedCommitError)
  return matchesSqlState(UNUSABLE_SESSION_STATES)(error) || endsSession(error) || isPlanStale(error)
}

/** Whether the server, or a pooler, ends the session with this error. Poolers do so with SQLSTATEs of any class. */
const endsSession: ErrorPredicate = (error) => /^(?:FATAL|PANIC)$/.test((error as { severity?: string }).severity ?? '')

/** Whether the server has run out of transaction IDs, or of multixact IDs, until a vacuum has frozen old rows. */
const isOutOfTransactionIds: ErrorPredicate = (error) =>
  matchesSqlState(/^54000/)(error) && routineOf(error).startsWith('GetNew')

/** Whether the table was altered, and the connection keeps a plan for what it was before. Nothing was done. */
export const isPlanStale = (error: unknown): boolean =>
  matchesSqlState(/^0A000/)(error) && routineOf(error) === 'RevalidateCachedQuery'

/** Whether another session prepared the statement, as a pooler lends one for each transaction. Nothing was done. */
export const isPreparedStatementError: ErrorPredicate = matchesSqlState(/^(?:42P05|26000)/)
/** Whether the statement was rolled back in favour of another one, and may be sent again as it is. */
export const isConflict: ErrorPredicate = matchesSqlState(/^(?:40001|40P01)/)
/** Whether the statement was cancelled, and rolled back in the server that says so. */
export const isCanceled: ErrorPredicate = matchesSqlState(/^57014/)
/** Whether the server rejected the value of a plant, by its type, a constraint, or its size. */
export const isRejectedValue: ErrorPredicate = (error) => matchesSqlState(/^2[23]/)(error) || isRowTooLarge(error)
/** Whether one plant of several can be the cause: its value, or a policy or the check option of a view rejects it. */
export const isSinglePlantError: ErrorPredicate = (error) =>
  isRejectedValue(error) || (matchesSqlState(/^(?:44|42501)/)(error) && routineOf(error) === 'ExecWithCheckOptions')
/**
 * Whether a row is too large for an index, which limits owners, as texts have no limit, or for a table that keeps texts in
 * its rows. 54000 has many other causes.
 */
export const isRowTooLarge: ErrorPredicate = (error) =>
  matchesSqlState(/^54000/)(error) && ROW_TOO_LARGE_ROUTINES.test(routineOf(error))

/** The functions that build a row of a B-tree, GiST, GIN, BRIN or SP-GiST index, or of a table. */
const ROW_TOO_LARGE_ROUTINES =
  /^(?:_bt_check_third_page|index_form_tuple|GinFormTuple|brin_do|spgdo|RelationGetBufferForTuple)/

/** The function of PostgreSQL that reported an error. Other than the message, it's never translated. */
const routineOf = (error: unknown): string => (error as { routine?: string }).routine ?? ''

/** The SQLSTATE of an error that the server sent. EPIPE and other codes of Node look like one that a trigger can raise. */
function sqlStateOf(error: unknown): string | undefined {
  if (!(isError(error) && 'code' in error && typeof error.code === 'string')) return undefined
  const pattern = 'severity' in error ? /^[0-9A-Z]{5}$/ : /^[0-9A-DF-Z][0-9A-Z]{4}$/
  return pattern.test(error.code) ? error.code : undefined
}
