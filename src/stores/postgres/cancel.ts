import { Buffer } from 'node:buffer'
import { connect, isIP, type NetConnectOpts, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'
import { clearTimeout, setTimeout } from '../../timers.ts'
import { NoResponseError } from './errors.ts'
import { lookup } from '../lookup.ts'
import type { Connection } from './pool.ts'

/** Stands in place of the protocol version (postgresql.org/docs/current/protocol-message-formats.html). */
const CANCEL_REQUEST_CODE = 80_877_102
const SSL_REQUEST_CODE = 80_877_103

/** Over a second connection, as `psql` does at Ctrl-C. Settles once the server has sent the signal. */
export function cancelStatement(connection: Connection, timeoutMs: number): Promise<void> {
  return new Promise((resolve, reject) => {
    const { processID, secretKey, ssl, host = '' } = connection
    if (typeof processID !== 'number' || typeof secretKey !== 'number') {
      return reject(new Error('The connection does not tell how its statements are cancelled.'))
    }

    const { remoteAddress } = (connection.connection?.stream ?? {}) as Partial<Socket>
    const socket = connect(addressOf(connection, remoteAddress))
    // For each round trip: there are up to four, and the server may be far away.
    const timer = setTimeout(() => socket.destroy(new NoResponseError(timeoutMs)), timeoutMs)
    let isSent = false
    // The server answers nothing. It closes the connection when the signal is on its way.
    socket.on('error', reject).once('close', () => {
      clearTimeout(timer)
      if (isSent) resolve()
      else reject(new Error('The server took no cancellation.'))
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
        // The key is a secret: if the connection has TLS, it never goes without.
        if (response.toString() === 'S') {
          // The options that `pg` sets for the connection itself. It makes the key not enumerable.
          const tlsOptions = ssl === true ? {} : { ...ssl, key: ssl.key }
          const tlsSocket = connectTls({ socket, host, ...tlsOptions, ...(isIP(host) === 0 && { servername: host }) })
          tlsSocket.on('error', reject).once('secureConnect', () => sendCancelRequest(tlsSocket))
        } else {
          socket.destroy(new Error('The server refused TLS for a cancellation.'))
        }
      })
    })
  })
}

/** Whether a server says anything to a second connection. It is asked whether it takes TLS, which opens no session. */
export function isResponding(connection: Connection | undefined, timeoutMs: number): Promise<boolean> {
  return new Promise((resolve) => {
    // Nobody knows where to ask.
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

/** @param ip one of the servers that the host's name stands for, if it must be that one */
function addressOf({ host = 'localhost', port = 5432 }: Connection, ip = host): NetConnectOpts {
  return host.startsWith('/') ? { path: `${host}/.s.PGSQL.${port}` } : { host: ip, port, lookup }
}

function encodeMessage(...fields: readonly number[]): Buffer {
  const bytes = Buffer.alloc(4 + 4 * fields.length)
  for (const [index, field] of [bytes.length, ...fields].entries()) bytes.writeInt32BE(field, 4 * index)
  return bytes
}
