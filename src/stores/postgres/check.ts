import { UnsuitableDatabaseError } from './failure.ts'
import { AS_TEXT, type Connection } from './pool.ts'

const SETTINGS = `SELECT current_setting('transaction_read_only'), current_setting('server_encoding'),
    current_setting('client_encoding'), EXISTS (SELECT 1 FROM pg_foreign_table)`

/** A connection leads to a server that takes no writes. It may be a standby, whose plants are old. */
export class ReadOnlyServerError extends Error {
  static {
    this.prototype.name = 'ReadOnlyServerError'
  }
}

/**
 * Asks, in one round trip, whether a connection is fit for plants.
 * @returns whether its server has tables on others, where it commits too
 * @throws ReadOnlyServerError
 * @throws UnsuitableDatabaseError
 */
export async function checkConnection(connection: Connection): Promise<boolean> {
  // Not prepared, since it is asked once.
  const { rows } = await connection.query({ text: SETTINGS, values: [], rowMode: 'array', types: AS_TEXT })
  const [isReadOnly, serverEncoding, clientEncoding, hasForeignTables] = rows[0] as readonly string[]
  if (isReadOnly === 'on') throw new ReadOnlyServerError('The server is read-only: a standby, or set so.')
  requireUtf8('server', serverEncoding)
  requireUtf8('client', clientEncoding)
  return hasForeignTables === 't'
}

function requireUtf8(side: string, encoding: string | undefined): void {
  if (encoding === 'UTF8') return
  throw new UnsuitableDatabaseError(`The ${side}_encoding is ${encoding}; plants need UTF8.`)
}
