import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { type ExpectedResponse, ResponseReader } from './response-reader.ts'
import { Samples } from './report/statistics.ts'

/** The requests that a client sends. */
export interface Load {
  /** Returns the bytes of the nth request, counted from 0, as an ASCII string. */
  readonly request: (n: number) => string
  /** The expected response to every request. */
  readonly expectedResponse: ExpectedResponse
  /** The number of requests that a connection sends before it waits for a response. @default 1 */
  readonly pipelining?: number
  /** Whether the client busy-waits for responses instead of sleeping. */
  readonly spins?: boolean
  /** Ends the load after this number of requests. @default Infinity */
  readonly requests?: number
  /** Ends the load after this many seconds. @default Infinity */
  readonly seconds?: number
}

/** The result of a load. */
export interface Outcome {
  readonly responseCount: number
  readonly seconds: number
  /**
   * The times from sending a request to receiving the last byte of its response, in milliseconds, in ascending order.
   */
  readonly latencies: Float64Array
}

/** The state of one load, shared by all connections. */
interface LoadState {
  readonly load: Load
  readonly endsAt: number
  readonly requests: number
  readonly latencies: Samples
  sent: number
}

/** The state of one connection during a load. */
interface ConnectionState {
  readonly loadState: LoadState
  readonly reader: ResponseReader
  readonly resolve: () => void
  readonly reject: (reason: Error) => void
}

const RESPONSE_TIMEOUT_MS = 10_000

/**
 * A set of keep-alive connections, each of which sends its next request as soon as it has received a complete response.
 */
export class Client {
  readonly #connections: readonly Connection[]

  private constructor(connections: readonly Connection[]) {
    this.#connections = connections
  }

  static async connect(port: number, connections: number): Promise<Client> {
    return new Client(await Promise.all(Array.from({ length: connections }, () => Connection.open(port))))
  }

  /**
   * Sends all requests of a load and waits for their responses.
   * @throws UnexpectedResponseError if a response differs from the expected response
   */
  async send(load: Load): Promise<Outcome> {
    const start = performance.now()
    const { requests = Infinity, seconds = Infinity } = load
    const loadState: LoadState = { load, requests, endsAt: start + seconds * 1000, latencies: new Samples(), sent: 0 }

    let lastCount = 0
    const watchdog = setInterval(() => {
      if (loadState.latencies.count === lastCount) this.close(new Error(`no response for ${RESPONSE_TIMEOUT_MS} ms`))
      lastCount = loadState.latencies.count
    }, RESPONSE_TIMEOUT_MS)
    const stopSpinning = load.spins ? startSpinning() : undefined
    try {
      await Promise.all(this.#connections.map((connection) => connection.send(loadState)))
    } catch (error) {
      this.close()
      throw error
    } finally {
      clearInterval(watchdog)
      stopSpinning?.()
    }
    const elapsed = performance.now() - start
    return {
      responseCount: loadState.latencies.count,
      seconds: elapsed / 1000,
      latencies: loadState.latencies.sorted(),
    }
  }

  close(reason?: Error): void {
    for (const connection of this.#connections) connection.close(reason)
  }
}

/**
 * Keeps this process from sleeping. A server that writes to a sleeping client pays for waking it up: 10 µs on a virtual
 * machine. The slower a server is, the more often the client would sleep, which would make that server look even
 * slower.
 */
function startSpinning(): () => void {
  let immediate = setImmediate(function again() {
    immediate = setImmediate(again)
  })
  return () => clearImmediate(immediate)
}

class Connection {
  readonly #socket: Socket
  /** The send times of the requests that have no response yet, oldest first. */
  readonly #sentAt: number[] = []
  #state: ConnectionState | undefined

  private constructor(port: number) {
    const buffer = Buffer.allocUnsafe(65_536)
    this.#socket = connect({
      port,
      host: '127.0.0.1',
      noDelay: true,
      // Reading into one reused buffer costs a third of what 'data' events cost.
      onread: { buffer, callback: (length) => this.#read(buffer.subarray(0, length)) },
    })
    this.#socket.on('error', (error) => this.close(error))
    this.#socket.on('close', () => this.close(new Error('the server closed a connection')))
  }

  static async open(port: number): Promise<Connection> {
    const connection = new Connection(port)
    await once(connection.#socket, 'connect')
    return connection
  }

  send(loadState: LoadState): Promise<void> {
    return new Promise((resolve, reject) => {
      if (this.#socket.destroyed) return reject(new Error('the server has closed a connection'))
      this.#state = { loadState, reader: new ResponseReader(loadState.load.expectedResponse), resolve, reject }
      this.#write(this.#state, loadState.load.pipelining ?? 1, performance.now())
    })
  }

  close(reason?: Error): void {
    this.#socket.destroy()
    if (reason !== undefined) this.#state?.reject(reason)
  }

  #read(bytes: Buffer): boolean {
    const state = this.#state
    if (state === undefined) {
      this.close()
      return false
    }
    try {
      const responseCount = state.reader.read(bytes)
      const now = performance.now()
      for (let i = 0; i < responseCount; i++) state.loadState.latencies.add(now - (this.#sentAt.shift() ?? NaN))
      if (responseCount > 0) this.#write(state, responseCount, now)
      return true
    } catch (error) {
      this.close(error as Error)
      return false
    }
  }

  /**
   * Sends up to `count` requests in one write. Resolves the load's promise if there are no more requests and no pending
   * responses.
   */
  #write({ loadState, resolve }: ConnectionState, count: number, now: number): void {
    let text = ''
    for (let i = 0; i < count && loadState.sent < loadState.requests && now < loadState.endsAt; i++) {
      text += loadState.load.request(loadState.sent++)
      this.#sentAt.push(now)
    }
    if (text !== '') this.#socket.write(text, 'latin1')
    else if (this.#sentAt.length === 0) resolve()
  }
}
