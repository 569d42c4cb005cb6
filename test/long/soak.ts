// What a long run leaves behind. By hand, as it takes its time:
//   npm run soak                       ten minutes of mixed load, of which 5 % is aborted
//   npm run soak -- --minutes=1        less of it
import { readdirSync } from 'node:fs'
import { Agent, request, type RequestOptions } from 'node:http'
import { setTimeout } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { Program, TOKEN } from '../support/program/program.ts'

const { values: options } = parseArgs({
  options: {
    minutes: { type: 'string', default: '10' },
    store: { type: 'string', default: 'memory:' },
  },
})

const MINUTES = Number(options.minutes)
const HEADERS = { Authorization: `Bearer ${TOKEN}`, 'Content-Type': 'application/json' }

/** Loaded into the program: at SIGUSR2 it says what it holds, and what keeps its event loop alive. */
const PROBE = `process.on('SIGUSR2', () => {
  gc()
  const resources = process.getActiveResourcesInfo().length
  process.stderr.write(JSON.stringify({ heap: process.memoryUsage().heapUsed, resources }) + '\\n')
})`

const nodeArgs = ['--expose-gc', '--import', `data:text/javascript,${encodeURIComponent(PROBE)}`]
const program = await Program.start({ PLANT_STORE_URL: options.store }, nodeArgs)

let measures = 0
async function measure(): Promise<{ heapMB: number; resources: number; files: number | undefined }> {
  program.child.kill('SIGUSR2')
  const line = await program.stderr.find((line) => line.startsWith('{"heap":'), ++measures)
  const { heap, resources } = JSON.parse(line!) as { heap: number; resources: number }
  const files = process.platform === 'linux' ? readdirSync(`/proc/${program.child.pid}/fd`).length : undefined
  return { heapMB: Math.round(heap / 1e4) / 100, resources, files }
}

/** Measures once every connection of the load has been closed. */
async function settled(): ReturnType<typeof measure> {
  for (;;) {
    const now = await measure()
    await setTimeout(500)
    if ((await measure()).resources === now.resources) return now
  }
}

/** Sends a request and reads its answer, or goes away in the middle of either. */
function exchange(options: RequestOptions, body = '', isAborted = false): Promise<number | undefined> {
  return new Promise((resolve) => {
    const sent = request({ ...options, headers: { ...HEADERS, 'Content-Length': Buffer.byteLength(body) } })
    sent.on('error', () => resolve(undefined))
    sent.on('response', (response) => {
      response.on('error', () => undefined).on('close', () => resolve(response.statusCode))
      if (isAborted) sent.destroy()
      else response.resume()
    })
    if (isAborted && Math.random() < 0.5) {
      sent.write(body.slice(0, body.length / 2), () => sent.destroy())
    } else {
      sent.end(body)
    }
  })
}

let lastId = 0

/** Has 24 clients send a mixed load, each on a connection of its own. What they create they delete again. */
async function load(minutes: number): Promise<Record<string, number>> {
  const counts: Record<string, number> = {}
  const until = Date.now() + minutes * 60_000
  async function work(): Promise<void> {
    const agent = new Agent({ keepAlive: true, maxSockets: 1 })
    const base = { agent, host: '127.0.0.1', port: program.port }
    while (Date.now() < until) {
      const id = ++lastId
      for (const [method, path, body] of [
        ['POST', '/plants', `{"id":${id},"name":"plant ${id}","tag":"soak"}`],
        ['GET', '/plants?limit=10', ''],
        ['POST', '/plants', '{"id":"one"}'],
        ['DELETE', `/plants/${id}`, ''],
      ] as const) {
        const status = (await exchange({ ...base, method, path }, body, Math.random() < 0.05)) ?? 'aborted'
        counts[status] = (counts[status] ?? 0) + 1
      }
      // A request that was aborted may have been carried out or not.
      await exchange({ ...base, method: 'DELETE', path: `/plants/${id}` })
    }
    agent.destroy()
  }
  await Promise.all(Array.from({ length: 24 }, work))
  return counts
}

await load(Math.min(0.2, MINUTES))
console.log('before', await settled())
console.log('answers by status', await load(MINUTES))
console.log('after ', await settled())
program.child.kill('SIGTERM')
console.log('exit status', await program.ended)
