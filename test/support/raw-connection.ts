import { once } from 'node:events'
import { connect, type Socket } from 'node:net'

/** A connection on which a test says every byte. */
export class RawConnection {
  readonly socket: Socket
  received = ''
  /** Settles with all that was received; says at its end where the connection was reset. */
  readonly closed: Promise<string>

  /** @param allowHalfOpen whether the client stays when the server has ended its side */
  static async open(port: number, allowHalfOpen = false): Promise<RawConnection> {
    const connection = new RawConnection(connect({ port, host: '127.0.0.1', allowHalfOpen }))
    await once(connection.socket, 'connect')
    return connection
  }

  private constructor(socket: Socket) {
    this.socket = socket
    socket.on('data', (data) => (this.received += data.toString('latin1')))
    socket.on('error', (error: NodeJS.ErrnoException) => (this.received += `<${error.code}>`))
    this.closed = new Promise((resolve) => socket.on('close', () => resolve(this.received)))
  }

  send(text: string): this {
    this.socket.write(text)
    return this
  }

  /** Settles once what was received matches. */
  async receive(pattern: RegExp): Promise<RegExpExecArray> {
    for (;;) {
      const match = pattern.exec(this.received)
      if (match !== null) return match
      if (this.socket.destroyed) throw new Error(`The connection has closed after ${JSON.stringify(this.received)}`)
      await Promise.race([once(this.socket, 'data'), this.closed])
    }
  }
}
