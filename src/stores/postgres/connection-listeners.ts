import { closeOnParseError } from './close-on-parse-error.ts'
import type { Connection, ConnectionPool } from './pool.ts'

/** The PostgreSQL function that waits for the synchronous standby. It sends a notice only if its wait was canceled. */
const STANDBY_WAIT_ROUTINE = 'SyncRepWaitForLSN'

/** Pools and connections that already have the listeners. Several stores may share a pool. */
const listenedTo = new WeakSet<ConnectionPool | Connection>()

/** Connections whose server reported a commit that the synchronous standby hasn't confirmed. */
const unconfirmedConnections = new WeakSet<Connection>()

/**
 * Adds listeners to a pool and its future connections. Without them, a connection that breaks would crash the process.
 */
export function addPoolListeners(pool: ConnectionPool): void {
  if (listenedTo.has(pool)) return
  listenedTo.add(pool)
  pool.on?.('error', () => undefined)
  // A connection might break as soon as it's established, before `pool.connect()` resolves.
  pool.on?.('connect', addConnectionListeners)
}

/** Adds listeners to a connection, which might be older than the store. */
export function addConnectionListeners(connection: Connection): void {
  if (listenedTo.has(connection)) return
  listenedTo.add(connection)
  connection.on('error', () => undefined)
  closeOnParseError(connection.connection?.stream)
  connection.on('notice', ({ routine }) => routine === STANDBY_WAIT_ROUTINE && unconfirmedConnections.add(connection))
}

/** Forgets unconfirmed commits of earlier statements. Call this before each statement. */
export function resetUnconfirmedCommit(connection: Connection): void {
  unconfirmedConnections.delete(connection)
}

/** Whether the last statement was committed without confirmation from the synchronous standby. */
export const hasUnconfirmedCommit = (connection: Connection): boolean => unconfirmedConnections.has(connection)
