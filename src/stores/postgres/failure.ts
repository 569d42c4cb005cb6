/** Classes of SQLSTATE after which trying again may help (postgresql.org/docs/current/errcodes-appendix.html). */
const TRANSIENT_CLASSES: ReadonlySet<string> = new Set([
  '08', // the connection failed
  '40', // the transaction was rolled back, or what became of it is not known
  '53', // out of disk, memory or connections
  '57', // cancelled, timed out, or the server is going down or coming up
])

/** Conditions of other classes after which trying again may help. */
const TRANSIENT_STATES: ReadonlySet<string> = new Set([
  '25006', // the server is read-only: a standby that is not promoted yet
  '25P04', // transaction_timeout
  '55P03', // lock_timeout
])

/** Classes of SQLSTATE that speak of the values sent: a value out of bounds, a constraint, a size limit. */
const VALUE_CLASSES: ReadonlySet<string> = new Set(['22', '23', '54'])

/** Whether trying again may help after this error of a query. */
export function isTransient(error: unknown): boolean {
  const state = sqlState(error)
  if (state !== undefined) return TRANSIENT_CLASSES.has(state.slice(0, 2)) || TRANSIENT_STATES.has(state)
  // What the server did not send arose on the way to it. The driver gives most of that no code, only
  // messages ("Connection terminated unexpectedly", "timeout exceeded when trying to connect"), so what is
  // told apart is what cannot come from there: an error of the code.
  return error instanceof Error && !(error instanceof TypeError || error instanceof RangeError)
}

/** Whether the statement was rolled back in favour of another one, and may be sent again as it is. */
export function isConflict(error: unknown): boolean {
  const state = sqlState(error)
  return state === '40001' || state === '40P01'
}

/** Whether the server refused a value: other values of the same statement may be sound. */
export function isRefusedValue(error: unknown): boolean {
  return VALUE_CLASSES.has(sqlState(error)?.slice(0, 2) ?? '')
}

/**
 * Whether something has the name of the table to be made. `IF NOT EXISTS` does not see what another process makes
 * at the same time; whether its row, its type or the table itself is met first is chance.
 */
export function isNameTaken(error: unknown): boolean {
  const state = sqlState(error)
  return state === '23505' || state === '42710' || state === '42P07'
}

/** The SQLSTATE of an error that the server sent. None begins with E; codes of Node do, and EPIPE is as long. */
function sqlState(error: unknown): string | undefined {
  if (!(error instanceof Error && 'code' in error && typeof error.code === 'string')) return undefined
  return /^[0-9A-DF-Z][0-9A-Z]{4}$/.test(error.code) ? error.code : undefined
}
