/** The server takes no writes: it is a standby, or is set so. */
const READ_ONLY = '25006'

/** The server is starting or stopping, and opens no sessions. */
const CANNOT_CONNECT_NOW = '57P03'

/** Classes of SQLSTATE after which trying again may help (postgresql.org/docs/current/errcodes-appendix.html). */
const TRANSIENT_CLASSES: ReadonlySet<string> = new Set([
  '08', // the connection failed
  '40', // the transaction was rolled back, or what became of it is not known
  '53', // out of disk, memory or connections
  '57', // cancelled, timed out, or the server is going down or coming up
])

/** Conditions of other classes after which trying again may help. */
const TRANSIENT_STATES: ReadonlySet<string> = new Set([
  READ_ONLY,
  '25P04', // transaction_timeout
  '55P03', // lock_timeout
])

/**
 * What a server or a pooler says when it ends the session. The statement may have been committed by then: a pooler uses
 * class 08 for whatever goes wrong behind it. Only 08001 says that a server behind this one cannot be reached, as
 * `postgres_fdw` does: the session goes on.
 */
const SESSION_ENDED = /^(?:08(?!001)|57P|25P04|40003)/

/** Classes of SQLSTATE that speak of the values sent: a value out of bounds, a constraint, a size limit. */
const VALUE_CLASSES: ReadonlySet<string> = new Set(['22', '23', '54'])

/** A statement had no answer within its time. */
export class NoAnswerError extends Error {
  static {
    this.prototype.name = 'NoAnswerError'
  }

  constructor(ms: number) {
    super(`No answer within ${ms} ms.`)
  }
}

/**
 * A statement was only answered when it was cancelled. What it did is committed, but the server was still waiting for
 * its standby, and a fail-over may lose it. Or the server had told another one to commit it, and nobody knows.
 */
export class UnconfirmedError extends Error {
  static {
    this.prototype.name = 'UnconfirmedError'
  }
}

/** A database cannot keep every plant, and waiting does not mend it. */
export class UnsuitableDatabaseError extends Error {
  static {
    this.prototype.name = 'UnsuitableDatabaseError'
  }
}

/** Whether trying again may help after this error. */
export function isTransient(error: unknown): boolean {
  const state = sqlState(error)
  if (state !== undefined) return TRANSIENT_CLASSES.has(state.slice(0, 2)) || TRANSIENT_STATES.has(state)
  return error instanceof Error && !isFault(error)
}

/**
 * Whether this is an error of the code, or of how it was set up. An error that arises on the way to a server mostly has
 * no code that tells it from others, only a message ("Connection terminated unexpectedly"), so what cannot come from
 * there is told apart.
 */
export function isFault(error: unknown): boolean {
  return error instanceof TypeError || error instanceof RangeError || error instanceof UnsuitableDatabaseError
}

/** Whether nothing was heard of the server for too long. A pool says so in words only. */
export function isTimeout(error: unknown): boolean {
  return (
    error instanceof NoAnswerError || (isTransient(error) && !isFromServer(error) && /time-?out/i.test(String(error)))
  )
}

/** Whether the server sent this error: then it does nothing more about the statement. */
export function isFromServer(error: unknown): boolean {
  return sqlState(error) !== undefined
}

/** Whether the statement may have been carried out, although this is what came of it. */
export function isOutcomeUnknown(error: unknown): boolean {
  const state = sqlState(error)
  if (state !== undefined) return SESSION_ENDED.test(state) && state !== CANNOT_CONNECT_NOW
  // Nothing was sent if there was no connection.
  const { syscall } = error as NodeJS.ErrnoException
  return syscall !== 'connect' && syscall !== 'getaddrinfo'
}

/** Whether a connection is of no use after this error of its server. */
export function breaksConnection(error: unknown): boolean {
  const state = sqlState(error)!
  return state === READ_ONLY || SESSION_ENDED.test(state)
}

/**
 * Whether the connection's session is not the one that prepared the statement. A pooler lends sessions to connections
 * for one transaction each. Nothing was carried out.
 */
export function isNotPrepared(error: unknown): boolean {
  const state = sqlState(error)
  return state === '42P05' || state === '26000'
}

/** Whether the statement was rolled back in favour of another one, and may be sent again as it is. */
export function isConflict(error: unknown): boolean {
  const state = sqlState(error)
  return state === '40001' || state === '40P01'
}

/** Whether the statement was cancelled, and rolled back in the server that says so. */
export function isCancelled(error: unknown): boolean {
  return sqlState(error) === '57014'
}

/** Whether the server refused a value: other values of the same statement may be sound. */
export function isRefusedValue(error: unknown): boolean {
  const state = sqlState(error)
  return state !== undefined && VALUE_CLASSES.has(state.slice(0, 2))
}

/** The SQLSTATE of an error that the server sent. None begins with E; codes of Node do, and EPIPE is as long. */
function sqlState(error: unknown): string | undefined {
  if (!(error instanceof Error && 'code' in error && typeof error.code === 'string')) return undefined
  return /^[0-9A-DF-Z][0-9A-Z]{4}$/.test(error.code) ? error.code : undefined
}
