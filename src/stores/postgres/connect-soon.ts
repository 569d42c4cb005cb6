import type { Connection, ConnectionPool } from './pool.ts'

/** How long to wait before asking the pool again, in milliseconds. */
const INTERVAL_MS = 500

/**
 * Asks a pool for a connection, again and again until there is one: while a server fails over, one connection may hang
 * until its time is over, although the next one would be there at once.
 * @param ms how long to ask again
 * @throws Error of the pool, if no request is left
 */
export function connectSoon(pool: ConnectionPool, ms: number): Promise<Connection> {
  return new Promise((resolve) => {
    let pending = 0
    let isOver = false
    const timer = setInterval(ask, INTERVAL_MS)
    const end = setTimeout(() => clearInterval(timer), ms)
    ask()

    function settle(connecting: Promise<Connection>): void {
      isOver = true
      clearInterval(timer)
      clearTimeout(end)
      resolve(connecting)
    }

    function ask(): void {
      pending++
      // The driver may throw at once, as when a file of certificates is gone.
      const connecting = (async () => pool.connect())()
      connecting.then(
        (connection) => (isOver ? connection.release() : settle(connecting)),
        () => --pending === 0 && settle(connecting),
      )
    }
  })
}
