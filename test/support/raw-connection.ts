import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect, type Server, type Socket } from 'node:net'
import { getPort } from './service.ts'
import { parseResponses, type RawResponse } from './parse-responses.ts'
import { limitWait } from './wait-until.ts'

/**
 * A client connection on which a test controls every byte. It reads immediately. To stop it from reading, pause its
 * socket.
 */
export class RawConnection {
  readonly socket: Socket
  /** The data received so far, as Latin-1. */
  received = ''
  /** Resolves with all received data when the connection closes. After an error, the data ends with `<code>`. */
  readonly closed: Promise<string>

  /**
   * @param server the server, its port, or the path of its Unix socket
   * @param allowHalfOpen whether the client keeps its side open after the server has ended the other
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

  /** Waits until the received data matches a pattern. */
  async waitFor(pattern: RegExp): Promise<RegExpExecArray> {
    for (;;) {
      const match = pattern.exec(this.received)
      if (match !== null) return match
      if (this.socket.closed) throw new Error(`The connection closed after ${JSON.stringify(await this.closed)}`)
      await this.#waitForEvent()
    }
  }

  /**
   * Waits for `count` final responses from now on, or by default until the server closes the connection.
   * @throws Error if the data isn't HTTP, or if the connection closes in the middle of a response
   */
  async readResponses(count = Infinity): Promise<readonly RawResponse[]> {
    const responses: RawResponse[] = []
    const chunks: Buffer[] = []
    const onData = (chunk: Buffer): unknown => chunks.push(chunk)
    this.socket.on('data', onData)
    try {
      // Before the connection closes, the end of a body without a length is unknown.
      if (count === Infinity) await this.#limitWait(this.closed)
      for (;;) {
        const parsed = parseResponses(Buffer.concat(chunks.splice(0)))
        responses.push(...parsed.responses)
        chunks.push(parsed.rest)
        if (responses.filter(({ status }) => status >= 200).length >= count) return responses
        if (this.socket.closed) {
          assert.equal(parsed.rest.toString('latin1'), '', 'the connection closed in the middle of a response')
          return responses
        }
        await this.#waitForEvent()
      }
    } finally {
      this.socket.off('data', onData)
    }
  }

  /** Like {@link readResponses}, but returns only the statuses. */
  async readStatuses(count?: number): Promise<readonly number[]> {
    return (await this.readResponses(count)).map(({ status }) => status)
  }

  /** Waits for more data or for the connection to close. */
  #waitForEvent(): Promise<unknown> {
    const { socket } = this
    const event = new Promise<void>((resolve) => {
      function settle(): void {
        socket.off('data', settle).off('close', settle)
        resolve()
      }
      socket.on('data', settle).on('close', settle)
    })
    return this.#limitWait(event)
  }

  #limitWait(event: Promise<unknown>): Promise<unknown> {
    return limitWait(event, () => `the connection received ${JSON.stringify(this.received.slice(-1000))}`)
  }
}

/** Opens a connection and returns both of its ends. */
export async function connectPair(
  server: Server,
  allowHalfOpen?: boolean,
): Promise<{ client: RawConnection; accepted: Socket }> {
  const accepting = once(server, 'connection') as Promise<[Socket]>
  const client = await RawConnection.open(server, allowHalfOpen)
  const [accepted] = await accepting
  return { client, accepted }
}
