import { isError } from '../../option-checks.ts'

// The patterns match SQLSTATEs, or their classes (postgresql.org/docs/current/errcodes-appendix.html).

/**
 * Trying again may help: the connection failed (08), the transaction was rolled back (40), something ran out (53), the
 * server cancelled the statement, stops or starts (57), is read-only (25006), or a time-out of its own passed.
 */
const TRANSIENT = /^(?:08|40|53|57|25006|25P04|55P03)/

/**
 * The statement may have been committed: the session ended, or the server cannot tell (40003). A server that starts
 * (57P03) has not taken the statement, nor has one that `postgres_fdw` cannot reach (08001).
 */
const OUTCOME_UNKNOWN = /^(?:08(?!001)|57P(?!03)|25P04|40003)/

export class NoAnswerError extends Error {
  constructor(ms: number) {
    super(`No answer within ${ms} ms.`)
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

// Not the names of the classes, which a bundler may shorten.
for (const [name, { prototype }] of Object.entries({ NoAnswerError, UnconfirmedError, UnsuitableDatabaseError })) {
  prototype.name = name
}

type Test = (error: unknown) => boolean

const hasState =
  (pattern: RegExp): Test =>
  (error) =>
    pattern.test(sqlState(error) ?? '')

export const isTransient = (error: unknown): boolean =>
  isFromServer(error) ? hasState(TRANSIENT)(error) : isError(error) && !isFault(error)

/** Whether the code is wrong. All other errors without a SQLSTATE are taken for those of a connection. */
export const isFault: Test = (error) => isError(error) && /^(?:Type|Range)Error$/.test(error.name)

/** Whether the server said nothing for too long. A pool says so in words only. */
export const isTimeout = (error: unknown): boolean =>
  error instanceof NoAnswerError || (!isFromServer(error) && /time-?out/i.test(String(error)))

/** Whether the server sent this error: then it does nothing more about the statement. */
export const isFromServer: Test = (error) => sqlState(error) !== undefined

export const isOutcomeUnknown: Test = (error) => !isFromServer(error) || hasState(OUTCOME_UNKNOWN)(error)

export function breaksConnection(error: unknown): boolean {
  if (!isFromServer(error)) return !(error instanceof UnconfirmedError)
  // The server starts, or is read-only.
  return isOutcomeUnknown(error) || hasState(/^(?:57P03|25006)/)(error) || isPlanStale(error)
}

/** Whether the table was altered, and the connection keeps a plan for what it was before. Nothing was done. */
export const isPlanStale = (error: unknown): boolean =>
  hasState(/^0A000/)(error) && (error as { routine?: string }).routine === 'RevalidateCachedQuery'

/** Whether another session prepared the statement, as a pooler lends one for each transaction. Nothing was done. */
export const isNotPrepared: Test = hasState(/^(?:42P05|26000)/)
/** Whether the statement was rolled back in favour of another one, and may be sent again as it is. */
export const isConflict: Test = hasState(/^(?:40001|40P01)/)
/** Whether the statement was cancelled, and rolled back in the server that says so. */
export const isCancelled: Test = hasState(/^57014/)
/** Whether the server rejected a value, by type, constraint or size. Others of the same statement may be sound. */
export const isRejectedValue: Test = hasState(/^(?:22|23|54)/)
/** Whether a value is larger than the server can keep: an owner beyond what its index takes, as texts have no limit. */
export const isTooLarge: Test = hasState(/^54000/)

/** The SQLSTATE of an error that the server sent. None begins with E; codes of Node do, and EPIPE is as long. */
function sqlState(error: unknown): string | undefined {
  if (!(isError(error) && 'code' in error && typeof error.code === 'string')) return undefined
  return /^[0-9A-DF-Z][0-9A-Z]{4}$/.test(error.code) ? error.code : undefined
}
