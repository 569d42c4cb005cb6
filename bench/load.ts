import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { type Answer, ResponseReader } from './response-reader.ts'
import { Samples } from './report/statistics.ts'

/** What a client sends for a while. */
export interface Load {
  /** The nth request, from 0 on, as it goes over the wire: ASCII only. */
  readonly request: (n: number) => string
  /** What each of them must be answered. */
  readonly answer: Answer
  /** How many requests a connection sends before the first is answered; default 1. */
  readonly pipelining?: number
  /** Keeps the client awake while it waits. */
  readonly spins?: boolean
  /** Ends after this many requests; default never. */
  readonly requests?: number
  /** Ends after this time; default never. */
  readonly seconds?: number
}

/** What came of a load. */
export interface Outcome {
  readonly answered: number
  readonly seconds: number
  /** Milliseconds from sending a request to the last byte of its answer, ascending. */
  readonly latencies: Float64Array
}

/** The state of one load, shared by all connections. */
interface Run {
  readonly load: Load
  readonly end: number
  readonly requests: number
  readonly latencies: Samples
  sent: number
}

/** The part of one connection in a run. */
interface Phase {
  readonly run: Run
  readonly reader: ResponseReader
  readonly resolve: () => void
  readonly reject: (reason: Error) => void
}

const SILENCE_MS = 10_000

/** Keep-alive connections that send a request as soon as an answer is complete. */
export class Client {
  readonly #connections: readonly Connection[]

  private constructor(connections: readonly Connection[]) {
    this.#connections = connections
  }

  static async connect(port: number, connections: number): Promise<Client> {
    return new Client(await Promise.all(Array.from({ length: connections }, () => Connection.open(port))))
  }

  /**
   * Sends a load and waits for the answer to every request of it.
   * @throws WrongAnswerError if one is not as expected
   */
  async send(load: Load): Promise<Outcome> {
    const start = performance.now()
    const { requests = Infinity, seconds = Infinity } = load
    const run: Run = { load, requests, end: start + seconds * 1000, latencies: new Samples(), sent: 0 }

    let seen = 0
    const watch = setInterval(() => {
      if (run.latencies.count === seen) this.close(new Error(`no answer for ${SILENCE_MS} ms`))
      seen = run.latencies.count
    }, SILENCE_MS)
    const stopSpinning = load.spins ? spin() : undefined
    try {
      await Promise.all(this.#connections.map((connection) => connection.send(run)))
    } catch (error) {
      this.close()
      throw error
    } finally {
      clearInterval(watch)
      stopSpinning?.()
    }
    const elapsed = performance.now() - start
    return { answered: run.latencies.count, seconds: elapsed / 1000, latencies: run.latencies.sorted() }
  }

  close(reason?: Error): void {
    for (const connection of this.#connections) connection.close(reason)
  }
}

/**
 * Keeps this process from sleeping. Whoever writes to a sleeping process pays for waking it, 10 µs on a virtual
 * machine: the slower a server, the oftener its client sleeps, and the slower it would look.
 */
function spin(): () => void {
  let immediate = setImmediate(function again() {
    immediate = setImmediate(again)
  })
  return () => clearImmediate(immediate)
}

class Connection {
  readonly #socket: Socket
  /** When each request was sent whose answer is due, oldest first. */
  readonly #sentAt: number[] = []
  #phase: Phase | undefined

  private constructor(port: number) {
    const buffer = Buffer.allocUnsafe(65_536)
    this.#socket = connect({
      port,
      host: '127.0.0.1',
      noDelay: true,
      // One buffer for good and no stream in between: a third of the cost of 'data' events.
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

  send(run: Run): Promise<void> {
    return new Promise((resolve, reject) => {
      if (this.#socket.destroyed) return reject(new Error('the server has closed a connection'))
      this.#phase = { run, reader: new ResponseReader(run.load.answer), resolve, reject }
      this.#write(this.#phase, run.load.pipelining ?? 1, performance.now())
    })
  }

  close(reason?: Error): void {
    this.#socket.destroy()
    if (reason !== undefined) this.#phase?.reject(reason)
  }

  #read(bytes: Buffer): boolean {
    const phase = this.#phase
    if (phase === undefined) {
      this.close()
      return false
    }
    try {
      const answers = phase.reader.read(bytes)
      const now = performance.now()
      for (let i = 0; i < answers; i++) phase.run.latencies.add(now - (this.#sentAt.shift() ?? NaN))
      if (answers > 0) this.#write(phase, answers, now)
      return true
    } catch (error) {
      this.close(error as Error)
      return false
    }
  }

  /** Sends up to so many requests in one write. Ends the phase if there is nothing to send and nothing to wait for. */
  #write({ run, resolve }: Phase, count: number, now: number): void {
    let text = ''
    for (let i = 0; i < count && run.sent < run.requests && now < run.end; i++) {
      text += run.load.request(run.sent++)
      this.#sentAt.push(now)
    }
    if (text !== '') this.#socket.write(text, 'latin1')
    else if (this.#sentAt.length === 0) resolve()
  }
}
