import { clearInterval, clearTimeout, setInterval, setTimeout } from '../../legacy/timers.ts'
import type { Connection, ConnectionPool } from './pool.ts'

const RETRY_INTERVAL_MS = 500

/**
 * Requests another connection from the pool every 500 ms, until one of the requests succeeds or until all of them have
 * failed. During a failover, a connection attempt might hang although the next attempt would succeed immediately.
 * @param timeoutMs how long to keep starting new requests
 */
export function connectWithRetry(pool: ConnectionPool, timeoutMs: number): Promise<Connection> {
  return new Promise((resolve) => {
    let pending = 0
    let isSettled = false
    const retryTimer = setInterval(connect, RETRY_INTERVAL_MS)
    const deadlineTimer = setTimeout(() => clearInterval(retryTimer), timeoutMs)
    connect()

    function settle(connecting: Promise<Connection>): void {
      isSettled = true
      clearInterval(retryTimer)
      clearTimeout(deadlineTimer)
      resolve(connecting)
    }

    function connect(): void {
      pending++
      // The driver's `connect()` might throw synchronously, for example if a certificate file is missing.
      const connecting = (async () => pool.connect())()
      connecting.then(
        (connection) => (isSettled ? connection.release() : settle(connecting)),
        () => --pending === 0 && settle(connecting),
      )
    }
  })
}
