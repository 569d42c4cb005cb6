import { createRequire } from 'node:module'
import { Socket } from 'node:net'
import { join } from 'node:path'
import { cwd } from 'node:process'
import type { Client, ClientConfig } from 'pg'
import { lookup } from '../../legacy/stores/lookup.ts'
import { closeOnParseError } from './close-on-parse-error.ts'
import type { PostgresTarget } from './postgres-url.ts'

/** Loads `pg`, an optional peer dependency. @throws Error that says how to install `pg` */
export function loadDriver(): typeof import('pg') {
  try {
    return requireDriver()
  } catch (error) {
    const [reason] = (error as Error).message.split('\n')
    throw new Error(`cannot load the pg driver (npm install pg): ${reason}`, { cause: error })
  }
}

function requireDriver(): typeof import('pg') {
  try {
    return createRequire(import.meta.url)('pg') as typeof import('pg')
  } catch (error) {
    // If plant-store is installed globally or in a package manager's own store, it can't resolve `pg`. Try the working
    // directory instead.
    if ((error as NodeJS.ErrnoException).code !== 'MODULE_NOT_FOUND') throw error
    return createRequire(join(cwd(), 'package.json'))('pg') as typeof import('pg')
  }
}

/**
 * A socket that resolves host names with {@link lookup}, so that lookups don't pile up when the name servers are down.
 */
class DatabaseSocket extends Socket {
  override connect(...args: readonly unknown[]): this {
    const [port, host] = args
    if (typeof host === 'string') return super.connect({ port: Number(port), host, lookup })
    // The port is the path of a Unix socket here.
    return super.connect(String(port))
  }
}

/** The members of the driver's protocol layer that are used here. */
interface DriverConnection {
  readonly stream: Socket
  on(event: string, listener: (message: { readonly mechanisms?: readonly string[] }) => void): this
}

/**
 * Creates the client class for the pool.
 * @param readTarget returns the connection parameters. It's called for each new connection, because passwords and
 *   certificates might be rotated
 * @returns the class, and a function that aborts the connection attempts in progress
 */
export function createClientClass(
  Base: typeof Client,
  readTarget: () => PostgresTarget,
): { readonly StoreClient: typeof Client; readonly abortConnecting: () => void } {
  const pendingConnections = new Set<DriverConnection>()

  class StoreClient extends Base {
    constructor(config?: ClientConfig) {
      const { connectionString, database, channelBinding, readTlsOptions: tlsOptions } = readTarget()
      super({
        ...config,
        connectionString,
        stream: () => new DatabaseSocket(),
        enableChannelBinding: channelBinding === 'prefer' || channelBinding === 'require',
      })
      const connection = this.connection as unknown as DriverConnection
      // Versions of `pg` that ignore the `stream` option might also connect without TLS although the URL requires it.
      if (!(connection.stream instanceof DatabaseSocket)) {
        throw new Error('the pg driver is too old; install version 8.16 or later (npm install pg@8)')
      }
      // `pg` reads the database name from `connectionParameters` when it connects.
      if (database !== '') Reflect.set(Reflect.get(this, 'connectionParameters') as object, 'database', database)
      const ssl: unknown = this.ssl
      // `pg` uses this object for its own TLS connection, and `cancelStatement` uses it too. Without `host`, older
      // versions of `pg` would expect a certificate for localhost if the server is given as an IP address.
      if (typeof ssl === 'object') Object.assign(ssl!, { host: this.host }, tlsOptions())
      for (const event of ['connect', 'sslconnect']) connection.on(event, () => closeOnParseError(connection.stream))
      pendingConnections.add(connection)
      for (const event of ['readyForQuery', 'end']) connection.on(event, () => pendingConnections.delete(connection))
      if (channelBinding === 'require') requireChannelBinding(connection)
    }
  }

  return {
    StoreClient,
    abortConnecting() {
      for (const { stream } of pendingConnections) stream.destroy()
    },
  }
}

/**
 * Closes the connection before the driver sends the password, unless the server proves that it terminates the TLS
 * session itself. An exception in these listeners closes the connection immediately, even if the server has already
 * sent ReadyForQuery: see {@link closeOnParseError}.
 */
function requireChannelBinding(connection: DriverConnection): void {
  let isOffered = false
  let isProven = false
  function assertBinding(isBound: boolean): void {
    if (!isBound) throw new Error('The server did not use channel binding, but channel_binding=require is set.')
  }
  connection
    .on('authenticationCleartextPassword', () => assertBinding(false))
    .on('authenticationMD5Password', () => assertBinding(false))
    .on('authenticationSASL', ({ mechanisms }) => {
      isOffered = mechanisms!.includes('SCRAM-SHA-256-PLUS')
      assertBinding(isOffered)
    })
    // The driver itself verifies the server's proof in this message, and closes the connection if the proof is invalid.
    .on('authenticationSASLFinal', () => (isProven = isOffered))
    .on('authenticationOk', () => assertBinding(isProven))
}
