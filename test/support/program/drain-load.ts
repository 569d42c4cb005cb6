import { once } from 'node:events'
import { Agent, request, type IncomingMessage } from 'node:http'
import { setTimeout } from 'node:timers/promises'
import { TOKEN } from './program.ts'

const HEADERS = { Authorization: `Bearer ${TOKEN}`, 'Content-Type': 'application/json' }

// Starts with the time, because a persistent store still contains the plants of earlier runs.
let lastId = BigInt(Date.now()) * 1_000_000n

/**
 * Clients that create plants in a loop and send each body slowly. Every second client opens a connection for each
 * request. The others use keep-alive.
 */
export class DrainLoad {
  succeeded = 0
  /** The number of established connections, including those that the kernel reset before the server accepted them. */
  connectionCount = 0
  /** The status or error of each request without a 200 response. */
  readonly failures: string[] = []
  /** Resolves once every client has stopped: after a refused connection, or after `stop()`. */
  readonly finished: Promise<unknown>
  #isStopped = false
  readonly #port: number
  readonly #slowestMs: number
  readonly #stopsIfRefused: boolean
  readonly #waiters = new Map<number, () => void>()

  /**
   * @param slowestMs the maximum time that a client takes to send a body, in milliseconds
   * @param stopsIfRefused whether a client stops when a connection is refused, instead of recording a failure
   */
  constructor(port: number, clients: number, { slowestMs = 300, stopsIfRefused = true } = {}) {
    this.#port = port
    this.#slowestMs = slowestMs
    this.#stopsIfRefused = stopsIfRefused
    this.finished = Promise.all(Array.from({ length: clients }, (_, client) => this.#runClient(client % 2 === 0)))
  }

  /** Waits for this many further requests to succeed, or for all clients to stop. */
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
        // A reset before the connection is established counts as a refused connection: nothing has been sent.
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
