import { Buffer } from 'node:buffer'
import { connect, isIP, type NetConnectOpts, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'
import { clearTimeout, setTimeout } from '../../legacy/timers.ts'
import { NoResponseError } from './errors.ts'
import { lookup } from '../../legacy/stores/lookup.ts'
import type { Connection } from './pool.ts'

// These codes are sent instead of a protocol version (postgresql.org/docs/current/protocol-message-formats.html).
const CANCEL_REQUEST_CODE = 80_877_102
const SSL_REQUEST_CODE = 80_877_103

/**
 * Cancels the running statement of a connection, through a second connection, as `psql` does on Ctrl-C. Resolves when
 * the server has sent the signal to the process that executes the statement.
 * @param timeoutMs the timeout for each round trip
 */
export function cancelStatement(connection: Connection, timeoutMs: number): Promise<void> {
  return new Promise((resolve, reject) => {
    const { processID, secretKey, ssl, host = '' } = connection
    if (typeof processID !== 'number' || typeof secretKey !== 'number') {
      return reject(new Error('Cannot cancel the statement: the connection has no processID or no secretKey.'))
    }

    const { remoteAddress } = (connection.connection?.stream ?? {}) as Partial<Socket>
    const socket = connect(addressOf(connection, remoteAddress))
    // There are up to four round trips, and the timeout applies to each of them, because the server might be far away.
    const timer = setTimeout(() => socket.destroy(new NoResponseError(timeoutMs)), timeoutMs)
    let isSent = false
    // The server doesn't respond to a cancel request. It closes the connection after it has sent the signal.
    socket.on('error', reject).once('close', () => {
      clearTimeout(timer)
      if (isSent) resolve()
      else reject(new Error('The server closed the connection before the cancel request was sent.'))
    })

    function sendCancelRequest(stream: Socket): void {
      isSent = true
      timer.refresh()
      stream.resume().write(encodeMessage(CANCEL_REQUEST_CODE, processID!, secretKey!))
    }

    socket.once('connect', () => {
      timer.refresh()
      if (ssl === undefined || ssl === false) return sendCancelRequest(socket)
      socket.write(encodeMessage(SSL_REQUEST_CODE))
      socket.once('data', (response) => {
        timer.refresh()
        // If the original connection uses TLS, never send the secret key without TLS.
        if (response.toString() === 'S') {
          // The same options that `pg` uses for its own connection. `key` must be copied explicitly, because `pg` makes
          // it non-enumerable.
          const tlsOptions = ssl === true ? {} : { ...ssl, key: ssl.key }
          const tlsSocket = connectTls({ socket, host, ...tlsOptions, ...(isIP(host) === 0 && { servername: host }) })
          tlsSocket.on('error', reject).once('secureConnect', () => sendCancelRequest(tlsSocket))
        } else {
          socket.destroy(new Error('The server rejected TLS for the cancel request.'))
        }
      })
    })
  })
}

/**
 * Whether the server of a connection responds to an SSLRequest on a second connection. An SSLRequest doesn't open a
 * session on the server.
 */
export function isResponding(connection: Connection | undefined, timeoutMs: number): Promise<boolean> {
  return new Promise((resolve) => {
    // Without an address, assume that the server responds.
    if (connection?.host === undefined) return resolve(true)
    const socket = connect({ ...addressOf(connection), timeout: timeoutMs }, () =>
      socket.write(encodeMessage(SSL_REQUEST_CODE)),
    )
    for (const event of ['data', 'end', 'error', 'timeout']) {
      socket.once(event, () => {
        socket.destroy()
        resolve(event !== 'timeout')
      })
    }
  })
}

/** @param ip the IP address to use if the host name resolves to several servers */
function addressOf({ host = 'localhost', port = 5432 }: Connection, ip = host): NetConnectOpts {
  return host.startsWith('/') ? { path: `${host}/.s.PGSQL.${port}` } : { host: ip, port, lookup }
}

function encodeMessage(...fields: readonly number[]): Buffer {
  const bytes = Buffer.alloc(4 + 4 * fields.length)
  for (const [index, field] of [bytes.length, ...fields].entries()) bytes.writeInt32BE(field, 4 * index)
  return bytes
}
