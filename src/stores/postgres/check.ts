import { UnsuitableDatabaseError } from './failure.ts'
import { AS_TEXT, type Connection, type Query } from './pool.ts'

/** Not prepared, since it is asked once. */
const CHECK: Query = {
  text: `SELECT current_setting('transaction_read_only'), current_setting('server_encoding'),
    current_setting('client_encoding')`,
  values: [],
  rowMode: 'array',
  types: AS_TEXT,
}

/** A connection leads to a server that takes no writes. It may be a standby, whose plants are old. */
export class ReadOnlyServerError extends Error {
  static {
    this.prototype.name = 'ReadOnlyServerError'
  }
}

/**
 * Asks, in one round trip, whether a connection is fit for plants.
 * @throws ReadOnlyServerError
 * @throws UnsuitableDatabaseError
 */
export async function checkConnection(connection: Connection): Promise<void> {
  const { rows } = await connection.query({ ...CHECK })
  const [isReadOnly, ...encodings] = rows[0] as readonly string[]
  if (isReadOnly === 'on') throw new ReadOnlyServerError('The server is read-only: a standby, or set so.')
  for (const [index, encoding] of encodings.entries()) {
    const side = index === 0 ? 'server' : 'client'
    if (encoding !== 'UTF8') throw new UnsuitableDatabaseError(`The ${side}_encoding is ${encoding}; plants need UTF8.`)
  }
}
