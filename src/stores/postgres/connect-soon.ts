import type { Connection, LendingPool } from './pool.ts'

/** How long a pool has to connect until it is asked again, in milliseconds. */
const INTERVAL_MS = 500

/**
 * Asks a pool for a connection, and again and again until there is one. While a server fails over, a connection that is
 * being made may lead nowhere until its time is over, when the next one would be there at once.
 * @param ms for how long to ask
 * @throws what the pool throws, if it does so for each time that it was asked
 */
export function connectSoon(pool: LendingPool, ms: number): Promise<Connection> {
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
