import { createRequire } from 'node:module'
import { Socket } from 'node:net'
import { join } from 'node:path'
import { cwd } from 'node:process'
import type { Client, ClientConfig } from 'pg'
import { lookup } from '../lookup.ts'
import { closeOnParseError } from './close-on-parse-error.ts'
import type { PostgresTarget } from './postgres-url.ts'

/** @throws Error that says how to install the driver, which isn't a dependency of this package */
export function loadDriver(): typeof import('pg') {
  try {
    return requireDriver()
  } catch (error) {
    const [reason] = (error as Error).message.split('\n')
    throw new Error(`Its driver cannot be loaded (npm install pg): ${reason}`, { cause: error })
  }
}

function requireDriver(): typeof import('pg') {
  try {
    return createRequire(import.meta.url)('pg') as typeof import('pg')
  } catch (error) {
    // Package managers can hide the driver from a package that is installed globally, or in a store of its own.
    if ((error as NodeJS.ErrnoException).code !== 'MODULE_NOT_FOUND') throw error
    return createRequire(join(cwd(), 'package.json'))('pg') as typeof import('pg')
  }
}

/** A socket to the server, whose lookups don't pile up when the name servers are down. */
class DatabaseSocket extends Socket {
  override connect(...args: readonly unknown[]): this {
    const [port, host] = args
    if (typeof host === 'string') return super.connect({ port: Number(port), host, lookup })
    // The path of a Unix socket.
    return super.connect(String(port))
  }
}

/** What the driver speaks the protocol with. */
interface DriverConnection {
  readonly stream: Socket
  on(event: string, listener: (message: { readonly mechanisms?: readonly string[] }) => void): this
}

/**
 * Makes the class of the pool's connections.
 * @param readTarget what new connections lead to; it's read again for each, as passwords and certificates are rotated
 * @returns the class, and a function that closes the connections that are still being made
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
      // Versions that ignore the option above can also connect without TLS to a URL that demands it.
      if (!(connection.stream instanceof DatabaseSocket)) {
        throw new Error('Its driver is too old; version 8.16 or later of pg is needed (npm install pg@8)')
      }
      // The driver reads the database name from here when it connects.
      if (database !== '') Reflect.set(Reflect.get(this, 'connectionParameters') as object, 'database', database)
      const ssl: unknown = this.ssl
      // `pg` has one object for this, for its own connection and for whoever cancels a statement.
      // For a server with an IP address, older versions would otherwise expect a certificate for localhost.
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
 * Closes a connection before it sends a password to a server that doesn't prove that the TLS session ends there. What the
 * listeners throw closes it immediately, even if the server has already sent that it's ready: see `guardParser()`.
 */
function requireChannelBinding(connection: DriverConnection): void {
  let isOffered = false
  let isProven = false
  function assertBinding(isBound: boolean): void {
    if (!isBound) throw new Error('The server did not use channel binding, which channel_binding=require demands.')
  }
  connection
    .on('authenticationCleartextPassword', () => assertBinding(false))
    .on('authenticationMD5Password', () => assertBinding(false))
    .on('authenticationSASL', ({ mechanisms }) => {
      isOffered = mechanisms!.includes('SCRAM-SHA-256-PLUS')
      assertBinding(isOffered)
    })
    // The driver checks this message, too, and fails the connection if it proves nothing.
    .on('authenticationSASLFinal', () => (isProven = isOffered))
    .on('authenticationOk', () => assertBinding(isProven))
}
