import { once } from 'node:events'
import { Agent, request, type ClientRequest, type IncomingMessage } from 'node:http'
import { setTimeout } from 'node:timers/promises'
import { TOKEN } from './program.ts'

/** How long a client takes to send a body, at most, in milliseconds. */
const SLOWEST_MS = 300

const HEADERS = { Authorization: `Bearer ${TOKEN}`, 'Content-Type': 'application/json' }

// A store that keeps plants has those of earlier runs.
let lastId = BigInt(Date.now()) * 1_000_000n

/**
 * Clients that create plants without a pause, each slow to send its body. Every other one opens a connection for each
 * request; the rest keep theirs for as long as they may, and then open another.
 */
export class DrainLoad {
  answered = 0
  /** What befell the requests that were not answered 200. */
  readonly failures: string[] = []
  /** Settles once every client has ended: it was refused a connection, or told to stop. */
  readonly ended: Promise<unknown>
  #isStopped = false
  readonly #goals = new Map<number, () => void>()

  constructor(port: number, clients: number) {
    this.ended = Promise.all(Array.from({ length: clients }, (_, client) => this.#work(port, client % 2 === 0)))
  }

  /** Settles once so many requests more have been answered, or the clients have ended. */
  async progress(requests: number): Promise<void> {
    const reached = new Promise<void>((resolve) => this.#goals.set(this.answered + requests, resolve))
    await Promise.race([reached, this.ended])
  }

  async stop(): Promise<void> {
    this.#isStopped = true
    await this.ended
  }

  async #work(port: number, keepAlive: boolean): Promise<void> {
    const agent = new Agent({ keepAlive, maxSockets: 1 })
    while (!this.#isStopped) {
      try {
        const status = await create(agent, port)
        if (status === 200) this.#goals.get(++this.answered)?.()
        else this.failures.push(`status ${status}`)
      } catch (error) {
        const { syscall, code } = error as NodeJS.ErrnoException
        if (syscall === 'connect' && code === 'ECONNREFUSED') break
        this.failures.push(String(error))
      }
    }
    agent.destroy()
  }
}

async function create(agent: Agent, port: number): Promise<number | undefined> {
  const body = `{"id":${++lastId},"name":"Fern"}`
  const headers = { ...HEADERS, 'Content-Length': body.length }
  const sent = request({ agent, host: '127.0.0.1', port, method: 'POST', path: '/plants', headers })
  const responded = once(sent, 'response') as Promise<[IncomingMessage]>
  await Promise.all([responded, sendSlowly(sent, body)])
  const [response] = await responded
  await once(response.resume(), 'end')
  return response.statusCode
}

async function sendSlowly(sent: ClientRequest, body: string): Promise<void> {
  sent.write(body.slice(0, 1))
  await setTimeout(Math.random() * SLOWEST_MS)
  sent.end(body.slice(1))
}
