import { UnsuitableDatabaseError } from './failure.ts'
import { AS_TEXT, type Connection } from './pool.ts'

const SETTINGS = `SELECT current_setting('transaction_read_only'), current_setting('server_encoding'),
    current_setting('client_encoding'), EXISTS (SELECT 1 FROM pg_foreign_table)`

/**
 * Asks, in one round trip, whether a connection is fit for plants.
 * @returns whether its server has tables on others, where it commits too
 * @throws Error if its server takes no writes: it may be a standby, whose plants are old
 * @throws UnsuitableDatabaseError if waiting does not help
 */
export async function checkConnection(connection: Connection): Promise<boolean> {
  // Not prepared, since it is asked once.
  const { rows } = await connection.query({ text: SETTINGS, values: [], rowMode: 'array', types: AS_TEXT })
  const [isReadOnly, server, client, hasForeignTables] = rows[0] as readonly string[]
  if (isReadOnly === 'on') throw new Error('The server is read-only: a standby, or set so.')
  for (const [side, encoding] of Object.entries({ server, client })) {
    if (encoding !== 'UTF8') throw new UnsuitableDatabaseError(`The ${side}_encoding is ${encoding}; plants need UTF8.`)
  }
  return hasForeignTables === 't'
}
