import { isError } from '../../option-checks.ts'

// The patterns match SQLSTATEs, or their classes (postgresql.org/docs/current/errcodes-appendix.html).
// docs/postgres.md has the same lists for operators.

/**
 * Retrying can help: the connection failed (08), the transaction was rolled back (40) or found aborted (25P02), a
 * resource ran out (53), the server canceled the statement, stops or starts (57), its machine reported an error (58), its
 * snapshot is too old (72), it's read-only (25006), a timeout of its own passed (25P03, 25P04, 55P03), or another session
 * uses the object (55006).
 */
const TRANSIENT = /^(?:08|40|53|57|58|72|25006|25P0[234]|55006|55P03)/

/**
 * The statement may have been committed: the session ended, the server can't tell (40003), or it reported an I/O error
 * (58030), which a commit can meet too. A server that starts (57P03) hasn't run the statement, nor has one that
 * `postgres_fdw` can't reach (08001).
 */
const OUTCOME_UNKNOWN = /^(?:08(?!001)|57P(?!03)|25P0[34]|40003|58030)/

/** The session ended, or can't be used: the server starts or is read-only, or the transaction was aborted before. */
const UNUSABLE_SESSION = /^(?:08(?!001)|57P|25006|25P0[234]|40003)/

export class NoAnswerError extends Error {
  constructor(ms: number, missing = 'answer') {
    super(`No ${missing} within ${ms} ms.`)
  }
}

/** The driver couldn't parse what the server sent. The connection is unusable, and the same statement may fail again. */
export class UnreadableResponseError extends Error {
  constructor(cause: unknown) {
    super('The driver could not parse a response of the database.', { cause })
  }
}

/** A statement was cancelled that may be committed, here or on another server: it may be lost, or kept in part. */
export class UnconfirmedError extends Error {
  constructor(message = 'The statement was committed, but its standby has not confirmed it.') {
    super(message)
  }
}

/** A database cannot keep every plant, until somebody changes it. */
export class UnsuitableDatabaseError extends Error {}

// Not the names of the classes, which a bundler may shorten. An assignment would throw if `Error.prototype` is frozen.
for (const [name, { prototype }] of Object.entries({
  NoAnswerError,
  UnreadableResponseError,
  UnconfirmedError,
  UnsuitableDatabaseError,
})) {
  Object.defineProperty(prototype, 'name', { value: name, writable: true, configurable: true })
}

type Test = (error: unknown) => boolean

const hasState =
  (pattern: RegExp): Test =>
  (error) =>
    pattern.test(sqlState(error) ?? '')

export function isTransient(error: unknown): boolean {
  if (isFromServer(error)) return hasState(TRANSIENT)(error) || endsSession(error) || isOutOfTransactionIds(error)
  return isError(error) && !isFault(error) && !(error instanceof UnreadableResponseError)
}

/** Whether the code is wrong. All other errors without a SQLSTATE are taken for those of a connection. */
export const isFault: Test = (error) => isError(error) && /^(?:Type|Range)Error$/.test(error.name)

/** Whether the server said nothing for too long. A pool says so in words only. */
export const isTimeout = (error: unknown): boolean =>
  error instanceof NoAnswerError || (!isFromServer(error) && /time-?out/i.test(String(error)))

/** Whether the server sent this error: then it does nothing more about the statement. */
export const isFromServer: Test = (error) => sqlState(error) !== undefined

export const isOutcomeUnknown: Test = (error) =>
  !isFromServer(error) || hasState(OUTCOME_UNKNOWN)(error) || endsSession(error)

export function breaksConnection(error: unknown): boolean {
  if (!isFromServer(error)) return !(error instanceof UnconfirmedError)
  return hasState(UNUSABLE_SESSION)(error) || endsSession(error) || isPlanStale(error)
}

/** Whether the server, or a pooler, ends the session with this error. Poolers do so with SQLSTATEs of any class. */
const endsSession: Test = (error) => /^(?:FATAL|PANIC)$/.test((error as { severity?: string }).severity ?? '')

/** Whether the server has run out of transaction IDs, or of multixact IDs, until a vacuum has frozen old rows. */
const isOutOfTransactionIds: Test = (error) => hasState(/^54000/)(error) && routineOf(error).startsWith('GetNew')

/** Whether the table was altered, and the connection keeps a plan for what it was before. Nothing was done. */
export const isPlanStale = (error: unknown): boolean =>
  hasState(/^0A000/)(error) && routineOf(error) === 'RevalidateCachedQuery'

/** Whether another session prepared the statement, as a pooler lends one for each transaction. Nothing was done. */
export const isNotPrepared: Test = hasState(/^(?:42P05|26000)/)
/** Whether the statement was rolled back in favour of another one, and may be sent again as it is. */
export const isConflict: Test = hasState(/^(?:40001|40P01)/)
/** Whether the statement was cancelled, and rolled back in the server that says so. */
export const isCancelled: Test = hasState(/^57014/)
/** Whether the server rejected the value of a plant, by its type, a constraint, or its size. */
export const isRejectedValue: Test = (error) => hasState(/^2[23]/)(error) || isTooLarge(error)
/** Whether one plant of several can be the cause: its value, or a policy or the check option of a view rejects it. */
export const isOfOnePlant: Test = (error) =>
  isRejectedValue(error) || (hasState(/^(?:44|42501)/)(error) && routineOf(error) === 'ExecWithCheckOptions')
/**
 * Whether a row is too large for an index, which limits owners, as texts have no limit, or for a table that keeps texts in
 * its rows. 54000 has many other causes.
 */
export const isTooLarge: Test = (error) => hasState(/^54000/)(error) && TOO_LARGE.test(routineOf(error))

/** The functions that build a row of a B-tree, GiST, GIN, BRIN or SP-GiST index, or of a table. */
const TOO_LARGE = /^(?:_bt_check_third_page|index_form_tuple|GinFormTuple|brin_do|spgdo|RelationGetBufferForTuple)/

/** The function of PostgreSQL that reported an error. Other than the message, it's never translated. */
const routineOf = (error: unknown): string => (error as { routine?: string }).routine ?? ''

/** The SQLSTATE of an error that the server sent. EPIPE and other codes of Node look like one that a trigger can raise. */
function sqlState(error: unknown): string | undefined {
  if (!(isError(error) && 'code' in error && typeof error.code === 'string')) return undefined
  const isState = 'severity' in error ? /^[0-9A-Z]{5}$/ : /^[0-9A-DF-Z][0-9A-Z]{4}$/
  return isState.test(error.code) ? error.code : undefined
}
