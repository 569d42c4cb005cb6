import { once } from 'node:events'
import { Agent, request, type IncomingMessage } from 'node:http'
import { setTimeout } from 'node:timers/promises'
import { TOKEN } from './program.ts'

const HEADERS = { Authorization: `Bearer ${TOKEN}`, 'Content-Type': 'application/json' }

// A store that keeps plants has those of earlier runs.
let lastId = BigInt(Date.now()) * 1_000_000n

/**
 * Clients that create plants without a pause, each slow to send its body. Every other one opens a connection for each
 * request; the rest keep theirs for as long as they may, and then open another.
 */
export class DrainLoad {
  succeeded = 0
  /** How many connections have come about, of which the system may have reset some before they were accepted. */
  connectionCount = 0
  /** What befell the requests that were not answered 200: the response or the error. */
  readonly failures: string[] = []
  /** Settles once every client has ended: it was refused a connection, or told to stop. */
  readonly finished: Promise<unknown>
  #isStopped = false
  readonly #port: number
  readonly #slowestMs: number
  readonly #stopsIfRefused: boolean
  readonly #waiters = new Map<number, () => void>()

  /**
   * @param slowestMs how long a client takes to send a body, at most
   * @param endsIfRefused whether a client ends when it is refused a connection; otherwise that is a failure
   */
  constructor(port: number, clients: number, { slowestMs = 300, endsIfRefused: stopsIfRefused = true } = {}) {
    this.#port = port
    this.#slowestMs = slowestMs
    this.#stopsIfRefused = stopsIfRefused
    this.finished = Promise.all(Array.from({ length: clients }, (_, client) => this.#runClient(client % 2 === 0)))
  }

  /** Settles once so many requests more have been answered, or the clients have ended. */
  async waitForProgress(requests: number): Promise<void> {
    const reached = new Promise<void>((resolve) => this.#waiters.set(this.succeeded + requests, resolve))
    await Promise.race([reached, this.finished])
  }

  async stop(): Promise<void> {
    this.#isStopped = true
    await this.finished
  }

  async #runClient(keepAlive: boolean): Promise<void> {
    const agent = new Agent({ keepAlive, maxSockets: 1 })
    while (!this.#isStopped) {
      try {
        const status = await this.#createPlant(agent)
        if (status === 200) this.#waiters.get(++this.succeeded)?.()
        else this.failures.push(`status ${status}`)
      } catch (error) {
        // A reset is a refusal too as long as the client has not connected: it has sent nothing.
        if (this.#stopsIfRefused && (error as NodeJS.ErrnoException).syscall === 'connect') break
        this.failures.push(String(error))
      }
    }
    agent.destroy()
  }

  async #createPlant(agent: Agent): Promise<number | undefined> {
    const body = `{"id":${++lastId},"name":"Fern"}`
    const headers = { ...HEADERS, 'Content-Length': body.length }
    const clientRequest = request({
      agent,
      host: '127.0.0.1',
      port: this.#port,
      method: 'POST',
      path: '/plants',
      headers,
    })
    clientRequest.once('socket', (socket) => {
      if (socket.connecting) socket.once('connect', () => this.connectionCount++)
    })
    clientRequest.write(body.slice(0, 1))
    const bodySent = setTimeout(Math.random() * this.#slowestMs).then(() => clientRequest.end(body.slice(1)))
    const [[response]] = await Promise.all([once(clientRequest, 'response') as Promise<[IncomingMessage]>, bodySent])
    await once(response.resume(), 'end')
    return response.statusCode
  }
}
