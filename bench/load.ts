import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { performance } from 'node:perf_hooks'
import type { Case } from './cases.ts'

/** A phase ends when either limit is reached. */
export interface Limits {
  readonly requests?: number
  readonly seconds?: number
  /** The number of requests that a connection sends before it waits for a response. @default 1 */
  readonly pipelining?: number
}

type Expected = Pick<Case, 'request' | 'status' | 'bodyBytes'>

/** If nothing arrives for this long, the run fails. */
const RESPONSE_TIMEOUT_MS = 10_000

/** Keep-alive connections, each of which sends its next request as soon as it has received a complete response. */
export class Load {
  readonly #connections: readonly Connection[]
  /** The times from sending a request to the last byte of its response, in milliseconds. */
  readonly latencies: number[] = []
  /** The number of requests that were sent since the connections were opened. */
  sent = 0

  private constructor(connections: readonly Connection[]) {
    this.#connections = connections
  }

  static async open(port: number, connections: number): Promise<Load> {
    return new Load(await Promise.all(Array.from({ length: connections }, () => Connection.open(port))))
  }

  /**
   * Sends requests, and waits for all responses.
   * @throws Error if a response isn't as expected, or none arrives in time
   */
  async send(expected: Expected, { requests = Infinity, seconds = Infinity, pipelining = 1 }: Limits): Promise<void> {
    const end = performance.now() + seconds * 1000
    const last = this.sent + requests
    const next = (): string | undefined =>
      this.sent < last && performance.now() < end ? expected.request(this.sent++) : undefined

    let count = this.latencies.length
    const watchdog = setInterval(() => {
      if (this.latencies.length === count) this.close(new Error(`no response for ${RESPONSE_TIMEOUT_MS} ms`))
      count = this.latencies.length
    }, RESPONSE_TIMEOUT_MS)
    const stopSpinning = spin()
    try {
      const sent = this.#connections.map((connection) => connection.send(expected, next, pipelining, this.latencies))
      await Promise.all(sent)
    } finally {
      clearInterval(watchdog)
      stopSpinning()
    }
  }

  close(reason?: Error): void {
    for (const connection of this.#connections) connection.close(reason)
  }
}

/**
 * Keeps this process from sleeping. Waking up a client costs the server 10 µs on a virtual machine, and the slower a
 * server is, the more often its client would sleep.
 */
function spin(): () => void {
  let immediate = setImmediate(function again() {
    immediate = setImmediate(again)
  })
  return () => clearImmediate(immediate)
}

class Connection {
  readonly #socket: Socket
  /** The send times of the requests without a response, oldest first. */
  readonly #sentAt: number[] = []
  #received = ''
  #onData: () => void = () => undefined
  #fail: (reason: Error) => void = () => undefined

  private constructor(port: number) {
    this.#socket = connect({ port, host: '127.0.0.1', noDelay: true }).setEncoding('latin1')
    this.#socket.on('data', (text: string) => {
      this.#received += text
      this.#onData()
    })
    this.#socket.on('error', (error) => this.close(error))
    this.#socket.on('close', () => this.close(new Error('the server closed a connection')))
  }

  static async open(port: number): Promise<Connection> {
    const connection = new Connection(port)
    await once(connection.#socket, 'connect')
    return connection
  }

  send(expected: Expected, next: () => string | undefined, pipelining: number, latencies: number[]): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#fail = reject
      const sendNext = (count: number): void => {
        const requests: string[] = []
        for (let request; requests.length < count && (request = next()) !== undefined;) {
          requests.push(request)
          this.#sentAt.push(performance.now())
        }
        if (requests.length > 0) this.#socket.write(requests.join(''), 'latin1')
        else if (this.#sentAt.length === 0) resolve()
      }
      this.#onData = () => {
        let count = 0
        try {
          for (let length; (length = responseLength(this.#received, expected)) > 0; count++) {
            this.#received = this.#received.slice(length)
            latencies.push(performance.now() - this.#sentAt.shift()!)
          }
        } catch (error) {
          return this.close(error as Error)
        }
        if (count > 0) sendNext(count)
      }
      sendNext(pipelining)
    })
  }

  close(reason?: Error): void {
    this.#socket.destroy()
    if (reason !== undefined) this.#fail(reason)
  }
}

/**
 * Returns the length of the response at the start of a text, or 0 if it isn't complete.
 * @throws Error if the response isn't as expected
 */
export function responseLength(text: string, { status, bodyBytes }: Omit<Expected, 'request'>): number {
  const end = text.indexOf('\r\n\r\n')
  if (end === -1) return 0
  const head = text.slice(0, end)
  if (!head.startsWith(`HTTP/1.1 ${status} `)) throw new Error(`expected status ${status}: ${text.slice(0, 500)}`)
  const length = status === 204 ? 0 : Number(/\ncontent-length: *(\d+)/i.exec(head)?.[1])
  if (!(length === (bodyBytes ?? length))) throw new Error(`expected ${bodyBytes} bytes: ${text.slice(0, 500)}`)
  const total = end + 4 + length
  return text.length >= total ? total : 0
}
