import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect, type Server, type Socket } from 'node:net'
import { portOf } from './service.ts'
import { readAnswers, type WireAnswer } from './wire.ts'

/** A connection on which a test says every byte. It reads from the start; who is not to read pauses its socket. */
export class RawConnection {
  readonly socket: Socket
  /** What has come so far, a character for each byte. */
  received = ''
  /** Settles with all that was received; says at its end if the connection was reset. */
  readonly closed: Promise<string>

  /**
   * @param server the server, its port, or the path of its Unix socket
   * @param allowHalfOpen whether the client stays when the server has ended its side
   */
  static async open(server: Server | number | string, allowHalfOpen = false): Promise<RawConnection> {
    const at = typeof server === 'object' ? portOf(server) : server
    const address = typeof at === 'string' ? { path: at } : { port: at, host: '127.0.0.1', noDelay: true }
    const connection = new RawConnection(connect({ ...address, allowHalfOpen }))
    await once(connection.socket, 'connect')
    return connection
  }

  private constructor(socket: Socket) {
    this.socket = socket
    let failure = ''
    socket.on('data', (data) => (this.received += data.toString('latin1')))
    socket.on('error', ({ code }: NodeJS.ErrnoException) => (failure = `<${code}>`))
    this.closed = new Promise((resolve) => socket.on('close', () => resolve(this.received + failure)))
  }

  send(bytes: string | Uint8Array): this {
    this.socket.write(bytes)
    return this
  }

  /** Settles once what was received matches. */
  async receive(pattern: RegExp): Promise<RegExpExecArray> {
    for (;;) {
      const match = pattern.exec(this.received)
      if (match !== null) return match
      if (this.socket.closed) throw new Error(`The connection has closed after ${JSON.stringify(await this.closed)}`)
      await this.#news()
    }
  }

  /**
   * Settles once so many final answers have come from now on, by default once the server has closed the connection.
   * @throws Error if what comes is not HTTP, or ends within an answer
   */
  async answers(count = Infinity): Promise<readonly WireAnswer[]> {
    const all: WireAnswer[] = []
    const pieces: Buffer[] = []
    const take = (piece: Buffer): unknown => pieces.push(piece)
    this.socket.on('data', take)
    try {
      // A body without a length ends with the connection.
      if (count === Infinity) await this.closed
      for (;;) {
        const { answers, rest } = readAnswers(Buffer.concat(pieces.splice(0)))
        all.push(...answers)
        pieces.push(rest)
        if (all.filter(({ status }) => status >= 200).length >= count) return all
        if (this.socket.closed) {
          assert.equal(rest.toString('latin1'), '', 'the connection closed within an answer')
          return all
        }
        await this.#news()
      }
    } finally {
      this.socket.off('data', take)
    }
  }

  /** The statuses of what {@link answers} gives. */
  async statuses(count?: number): Promise<readonly number[]> {
    return (await this.answers(count)).map(({ status }) => status)
  }

  /** Settles when more has come, or the connection has closed. */
  #news(): Promise<void> {
    const { socket } = this
    return new Promise((resolve) => {
      function settle(): void {
        socket.off('data', settle).off('close', settle)
        resolve()
      }
      socket.on('data', settle).on('close', settle)
    })
  }
}

/** Opens a connection and gives both its ends. */
export async function openBoth(
  server: Server,
  allowHalfOpen?: boolean,
): Promise<{ client: RawConnection; accepted: Socket }> {
  const accepting = once(server, 'connection') as Promise<[Socket]>
  const client = await RawConnection.open(server, allowHalfOpen)
  const [accepted] = await accepting
  return { client, accepted }
}
