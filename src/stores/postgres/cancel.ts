import { Buffer } from 'node:buffer'
import { connect, isIP, type NetConnectOpts, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'
import { clearTimeout, setTimeout } from '../../timers.ts'
import { NoAnswerError } from './failure.ts'
import { lookup } from '../lookup.ts'
import type { Connection } from './pool.ts'

/** Stands in place of the protocol version (postgresql.org/docs/current/protocol-message-formats.html). */
const CANCEL_REQUEST = 80_877_102
const SSL_REQUEST = 80_877_103

/** Over a second connection, as `psql` does at Ctrl-C. Settles once the server has sent the signal. */
export function cancelStatement(connection: Connection, ms: number): Promise<void> {
  return new Promise((resolve, reject) => {
    const { processID, secretKey, ssl, host = '' } = connection
    if (typeof processID !== 'number' || typeof secretKey !== 'number') {
      return reject(new Error('The connection does not tell how its statements are cancelled.'))
    }

    const { remoteAddress } = (connection.connection?.stream ?? {}) as Partial<Socket>
    const socket = connect(addressOf(connection, remoteAddress))
    // For each round trip: there are up to four, and the server may be far away.
    const timer = setTimeout(() => socket.destroy(new NoAnswerError(ms)), ms)
    let isSent = false
    // The server answers nothing. It closes the connection when the signal is on its way.
    socket.on('error', reject).once('close', () => {
      clearTimeout(timer)
      if (isSent) resolve()
      else reject(new Error('The server took no cancellation.'))
    })

    function send(stream: Socket): void {
      isSent = true
      timer.refresh()
      stream.resume().write(message(CANCEL_REQUEST, processID!, secretKey!))
    }

    socket.once('connect', () => {
      timer.refresh()
      if (ssl === undefined || ssl === false) return send(socket)
      socket.write(message(SSL_REQUEST))
      socket.once('data', (answer) => {
        timer.refresh()
        // The key is a secret: if the connection has TLS, it never goes without.
        if (answer.toString() === 'S') {
          // The options that `pg` sets for the connection itself. It makes the key not enumerable.
          const own = ssl === true ? {} : { ...ssl, key: ssl.key }
          const secure = connectTls({ socket, host, ...own, ...(isIP(host) === 0 && { servername: host }) })
          secure.on('error', reject).once('secureConnect', () => send(secure))
        } else {
          socket.destroy(new Error('The server refused TLS for a cancellation.'))
        }
      })
    })
  })
}

/** Whether a server says anything to a second connection. It is asked whether it takes TLS, which opens no session. */
export function isAnswering(connection: Connection | undefined, ms: number): Promise<boolean> {
  return new Promise((resolve) => {
    // Nobody knows where to ask.
    if (connection?.host === undefined) return resolve(true)
    const socket = connect({ ...addressOf(connection), timeout: ms }, () => socket.write(message(SSL_REQUEST)))
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

function message(...fields: readonly number[]): Buffer {
  const bytes = Buffer.alloc(4 + 4 * fields.length)
  for (const [index, field] of [bytes.length, ...fields].entries()) bytes.writeInt32BE(field, 4 * index)
  return bytes
}
