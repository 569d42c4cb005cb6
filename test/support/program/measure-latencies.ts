import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { Agent, request, type IncomingMessage } from 'node:http'
import { setTimeout } from 'node:timers/promises'
import { TOKEN } from './program.ts'

/** Response times of a well-behaved client, in milliseconds. */
export interface Latencies {
  /** The time of the first request, including the connection setup. */
  readonly firstMs: number
  /** The median of the other requests, which `p99` and `max` describe too. */
  readonly p50: number
  readonly p99: number
  readonly max: number
}

export interface RequestOptions {
  /** Default: a list of ten plants. */
  readonly path?: string
  readonly headers?: Readonly<Record<string, string>>
  /** If set, each request creates a plant with this name instead. */
  readonly plantName?: string
  /** Whether each request opens a new connection. */
  readonly reconnects?: boolean
}

/** Sends requests one at a time, with a pause between them, and measures how long each response takes. */
export async function measureLatencies(
  port: number,
  options: RequestOptions = {},
  seconds = 1,
  pauseMs = 5,
): Promise<Latencies> {
  const { path = '/plants?limit=10', headers = {}, plantName, reconnects = false } = options
  const agent = new Agent({ keepAlive: !reconnects, maxSockets: 1 })
  const target = plantName === undefined ? { method: 'GET', path } : { method: 'POST', path: '/plants' }
  const body = plantName === undefined ? undefined : JSON.stringify({ id: 1, name: plantName })
  const fields = { ...headers, Authorization: `Bearer ${TOKEN}`, 'Content-Type': 'application/json' }
  const times: number[] = []
  for (const deadline = performance.now() + seconds * 1000; performance.now() < deadline;) {
    const startedAt = performance.now()
    const clientRequest = request({ agent, host: '127.0.0.1', port, ...target, headers: fields }).end(body)
    const [response] = (await once(clientRequest, 'response')) as [IncomingMessage]
    await once(response.resume(), 'end')
    times.push(performance.now() - startedAt)
    if (pauseMs > 0) await setTimeout(pauseMs)
  }
  agent.destroy()
  const [first, ...others] = times.map((ms) => Number(ms.toFixed(1)))
  others.sort((a, b) => a - b)
  const percentile = (fraction: number): number => others[Math.floor(others.length * fraction)] ?? first!
  return { firstMs: first!, p50: percentile(0.5), p99: percentile(0.99), max: others.at(-1) ?? first! }
}

/** Returns the resident memory of a process in bytes. Linux only. */
export function readResidentBytes({ pid }: ChildProcess): number {
  const [, kB] = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'latin1'))!
  return Number(kB) * 1024
}

/** Polls the resident memory of a process. Returns a function that stops the polling and returns the maximum. */
export function trackPeakMemory(child: ChildProcess): () => number {
  let peak = readResidentBytes(child)
  const timer = setInterval(() => (peak = Math.max(peak, readResidentBytes(child))), 20)
  return () => {
    clearInterval(timer)
    return peak
  }
}
