import { once } from 'node:events'
import { Agent, get, type IncomingMessage } from 'node:http'
import { TOKEN, type Program } from './program.ts'
import { residentOf } from './resident.ts'

/** What a client met that means well. */
export interface Waits {
  /** The 99th percentile of the times until its responses had come, in milliseconds. */
  readonly p99: number
  readonly longest: number
}

/** Sends requests one after another for so many seconds. */
export async function measureWaits(program: Program, path: string, seconds: number): Promise<Waits> {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  const times: number[] = []
  for (const until = performance.now() + seconds * 1000; performance.now() < until;) {
    const startedAt = performance.now()
    const headers = { Authorization: `Bearer ${TOKEN}` }
    const asked = get({ agent, host: '127.0.0.1', port: program.port, path, headers })
    const [response] = (await once(asked, 'response')) as [IncomingMessage]
    await once(response.resume(), 'end')
    times.push(performance.now() - startedAt)
  }
  agent.destroy()
  times.sort((a, b) => a - b)
  const round = (ms: number): number => Number(ms.toFixed(2))
  return { p99: round(times[Math.floor(times.length * 0.99)]!), longest: round(times.at(-1)!) }
}

/** Looks at the memory of a program until told to stop, and then gives the most that it had. */
export function watchMemory(program: Program): { stop(): number } {
  let peak = residentOf(program.child)
  const timer = setInterval(() => (peak = Math.max(peak, residentOf(program.child))), 20)
  return {
    stop() {
      clearInterval(timer)
      return peak
    },
  }
}
