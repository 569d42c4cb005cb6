import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect, type Server, type Socket } from 'node:net'
import { getPort } from './service.ts'
import { parseResponses, type RawResponse } from './parse-responses.ts'

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
    const portOrPath = typeof server === 'object' ? getPort(server) : server
    const address =
      typeof portOrPath === 'string' ? { path: portOrPath } : { port: portOrPath, host: '127.0.0.1', noDelay: true }
    const connection = new RawConnection(connect({ ...address, allowHalfOpen }))
    await once(connection.socket, 'connect')
    return connection
  }

  private constructor(socket: Socket) {
    this.socket = socket
    let errorSuffix = ''
    socket.on('data', (data) => (this.received += data.toString('latin1')))
    socket.on('error', ({ code }: NodeJS.ErrnoException) => (errorSuffix = `<${code}>`))
    this.closed = new Promise((resolve) => socket.on('close', () => resolve(this.received + errorSuffix)))
  }

  send(bytes: string | Uint8Array): this {
    this.socket.write(bytes)
    return this
  }

  /** Settles once what was received matches. */
  async waitFor(pattern: RegExp): Promise<RegExpExecArray> {
    for (;;) {
      const match = pattern.exec(this.received)
      if (match !== null) return match
      if (this.socket.closed) throw new Error(`The connection has closed after ${JSON.stringify(await this.closed)}`)
      await this.#waitForEvent()
    }
  }

  /**
   * Settles once so many final answers have come from now on, by default once the server has closed the connection.
   * @throws Error if what comes is not HTTP, or ends within an answer
   */
  async readResponses(count = Infinity): Promise<readonly RawResponse[]> {
    const responses: RawResponse[] = []
    const chunks: Buffer[] = []
    const onData = (chunk: Buffer): unknown => chunks.push(chunk)
    this.socket.on('data', onData)
    try {
      // A body without a length ends with the connection.
      if (count === Infinity) await this.closed
      for (;;) {
        const { responses: answers, rest } = parseResponses(Buffer.concat(chunks.splice(0)))
        responses.push(...answers)
        chunks.push(rest)
        if (responses.filter(({ status }) => status >= 200).length >= count) return responses
        if (this.socket.closed) {
          assert.equal(rest.toString('latin1'), '', 'the connection closed within an answer')
          return responses
        }
        await this.#waitForEvent()
      }
    } finally {
      this.socket.off('data', onData)
    }
  }

  /** The statuses of what {@link readResponses} gives. */
  async readStatuses(count?: number): Promise<readonly number[]> {
    return (await this.readResponses(count)).map(({ status }) => status)
  }

  /** Settles when more has come, or the connection has closed. */
  #waitForEvent(): Promise<void> {
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
export async function connectPair(
  server: Server,
  allowHalfOpen?: boolean,
): Promise<{ client: RawConnection; accepted: Socket }> {
  const accepting = once(server, 'connection') as Promise<[Socket]>
  const client = await RawConnection.open(server, allowHalfOpen)
  const [accepted] = await accepting
  return { client, accepted }
}
