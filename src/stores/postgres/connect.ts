import { UnsuitableDatabaseError } from './failure.ts'
import { AS_TEXT, type Connection, type ConnectionPool } from './pool.ts'

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

/**
 * Asks, in one round trip, whether a connection is fit for plants.
 * @returns whether its server has tables on others, where it commits too
 * @throws Error if its server takes no writes: it may be a standby, whose plants are old
 * @throws UnsuitableDatabaseError if waiting does not help
 */
export async function checkConnection(connection: Connection): Promise<boolean> {
  const text = `SELECT current_setting('transaction_read_only'), current_setting('server_encoding'),
    current_setting('client_encoding'), EXISTS (SELECT 1 FROM pg_foreign_table)`
  // Not prepared, since it is asked once.
  const { rows } = await connection.query({ text, values: [], rowMode: 'array', types: AS_TEXT })
  const [isReadOnly, server, client, hasForeignTables] = rows[0] as readonly string[]
  if (isReadOnly === 'on') throw new Error('The server is read-only: a standby, or set so.')
  for (const [side, encoding] of Object.entries({ server, client })) {
    if (encoding !== 'UTF8') throw new UnsuitableDatabaseError(`The ${side}_encoding is ${encoding}; plants need UTF8.`)
  }
  return hasForeignTables === 't'
}
