import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { Agent, request, type IncomingMessage } from 'node:http'
import { setTimeout } from 'node:timers/promises'
import { TOKEN } from './program.ts'

/** What a client met that means well, in milliseconds. */
export interface Latencies {
  /** The time until its first response had come, on a new connection. */
  readonly firstMs: number
  /** The median and the 99th percentile of the times of the others. */
  readonly p50: number
  readonly p99: number
  readonly max: number
}

/** What a client asks. */
export interface RequestOptions {
  /** By default a list of ten. */
  readonly path?: string
  readonly headers?: Readonly<Record<string, string>>
  /** The name of the plant that it creates instead. */
  readonly plantName?: string
  /** Whether it has a new connection for each request. */
  readonly reconnects?: boolean
}

/** Sends requests one after another for so many seconds, with a pause between them. */
export async function measureLatencies(
  port: number,
  options: RequestOptions = {},
  seconds = 1,
  pauseMs = 5,
): Promise<Latencies> {
  const { path = '/plants?limit=10', headers = {}, plantName: plant, reconnects: isAnew = false } = options
  const agent = new Agent({ keepAlive: !isAnew, maxSockets: 1 })
  const target = plant === undefined ? { method: 'GET', path } : { method: 'POST', path: '/plants' }
  const body = plant === undefined ? undefined : JSON.stringify({ id: 1, name: plant })
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

/** The bytes of a process that are in memory; on Linux. */
export function readResidentBytes({ pid }: ChildProcess): number {
  const [, kB] = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'latin1'))!
  return Number(kB) * 1024
}

/** Looks at the memory of a process until it is told to stop, and then gives the most that it had. */
export function trackPeakMemory(child: ChildProcess): () => number {
  let peak = readResidentBytes(child)
  const timer = setInterval(() => (peak = Math.max(peak, readResidentBytes(child))), 20)
  return () => {
    clearInterval(timer)
    return peak
  }
}
