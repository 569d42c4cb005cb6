// What a long run leaves behind, and what slow clients cost. By hand, as it takes its time:
//   npm run soak                       ten minutes of mixed load, of which 5 % is aborted
//   npm run soak -- --minutes=1        less of it
//   npm run soak -- --slow=2000        a normal client beside so many slow ones
import { once } from 'node:events'
import { readdirSync } from 'node:fs'
import { Agent, request, type RequestOptions } from 'node:http'
import { setTimeout } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { nextMessage, startAgain } from '../support/program/again.ts'
import { measureWaits } from '../support/program/normal-client.ts'
import { Program, TOKEN } from '../support/program/program.ts'
import { RawConnection } from '../support/wire/raw-connection.ts'

const { values: options } = parseArgs({
  options: {
    minutes: { type: 'string', default: '10' },
    slow: { type: 'string' },
    /** Where the slow clients go, in their own process. */
    port: { type: 'string' },
    store: { type: 'string', default: 'memory:' },
  },
})

/** Loaded into the program: at SIGUSR2 it says what it holds. */
const PROBE = `
let count = 0
process.on('SIGUSR2', () => {
  gc()
  const resources = process.getActiveResourcesInfo().length
  const { heapUsed: heap } = process.memoryUsage()
  process.stderr.write(JSON.stringify({ measure: ++count, heap, resources }) + '\\n')
})`

const HEADERS = { Authorization: `Bearer ${TOKEN}`, 'Content-Type': 'application/json' }
const FIELDS = `Host: plants\r\nAuthorization: Bearer ${TOKEN}\r\n`

interface Measure {
  readonly heapMB: number
  /** What keeps the event loop of the program alive: sockets, timers, servers. */
  readonly resources: number
  /** Open file descriptors, if the system says. */
  readonly files: number | undefined
}

function start(): Promise<Program> {
  const nodeArgs = ['--expose-gc', '--import', `data:text/javascript,${encodeURIComponent(PROBE)}`]
  return Program.start({ PLANT_STORE_URL: options.store, PLANT_STORE_MAX_CONNECTIONS: '100000' }, nodeArgs)
}

let measures = 0
async function measure(program: Program): Promise<Measure> {
  program.child.kill('SIGUSR2')
  const prefix = `{"measure":${++measures},`
  const line = await program.stderr.find((line) => line.startsWith(prefix))
  const { heap, resources } = JSON.parse(line!) as { heap: number; resources: number }
  const files = process.platform === 'linux' ? readdirSync(`/proc/${program.child.pid}/fd`).length : undefined
  return { heapMB: Math.round(heap / 1e4) / 100, resources, files }
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

/** One client's mixed load: what it creates it deletes again. */
async function mixedLoad(port: number, until: number): Promise<Map<number | undefined, number>> {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  const base = { agent, host: '127.0.0.1', port }
  const statuses = new Map<number | undefined, number>()
  while (Date.now() < until) {
    const id = ++lastId
    const plant = `{"id":${id},"name":"plant ${id}","tag":"soak"}`
    for (const [method, path, body] of [
      ['POST', '/plants', plant],
      ['GET', '/plants?limit=10', ''],
      ['POST', '/plants', '{"id":"one"}'],
      ['DELETE', `/plants/${id}`, ''],
    ] as const) {
      const status = await exchange({ ...base, method, path }, body, Math.random() < 0.05)
      statuses.set(status, (statuses.get(status) ?? 0) + 1)
    }
    // A request that was aborted may have been carried out or not.
    await exchange({ ...base, method: 'DELETE', path: `/plants/${id}` })
  }
  agent.destroy()
  return statuses
}

async function runMixedLoad(program: Program, minutes: number): Promise<Record<string, number>> {
  const until = Date.now() + minutes * 60_000
  const clients = Array.from({ length: 24 }, () => mixedLoad(program.port, until))
  const total: Record<string, number> = {}
  for (const statuses of await Promise.all(clients)) {
    for (const [status = 'aborted', count] of statuses) total[status] = (total[status] ?? 0) + count
  }
  return total
}

async function soak(minutes: number): Promise<void> {
  const program = await start()
  await runMixedLoad(program, Math.min(0.2, minutes))
  const before = await settled(program)
  console.log('before', before)
  console.log('answers by status', await runMixedLoad(program, minutes))
  console.log('after ', await settled(program))
  program.child.kill('SIGTERM')
  console.log('exit status', await program.ended)
}

/** Measures once every connection of the load has been closed. */
async function settled(program: Program): Promise<Measure> {
  for (;;) {
    const now = await measure(program)
    await setTimeout(500)
    if ((await measure(program)).resources === now.resources) return now
  }
}

async function resistSlow(count: number): Promise<void> {
  const program = await start()
  const post = { host: '127.0.0.1', port: program.port, method: 'POST', path: '/plants' }
  for (let id = 1; id <= 5000; id++) await exchange(post, `{"id":${id},"name":"${'x'.repeat(1000)}"}`)
  const { resources } = await settled(program)
  await measureWaits(program, '/plants?limit=10', 2)
  console.log('a client alone, in ms:', await measureWaits(program, '/plants?limit=10', 5))

  // In a process of their own, so that they do not hold up the client that is measured.
  const slow = startAgain(import.meta.url, `--port=${program.port}`)
  await nextMessage(slow)
  console.log(`a client beside ${count} slow ones, in ms:`, await measureWaits(program, '/plants?limit=10', 5))
  console.log('dropped at the latest after, in s:', await nextMessage(slow))
  while ((await measure(program)).resources > resources) await setTimeout(100)
  slow.kill()
  program.child.kill('SIGTERM')
  console.log('exit status', await program.ended)
}

/** Opens slow clients of each kind, and says when all are open, and when they were dropped. */
async function openSlowClients(port: number, count: number): Promise<void> {
  const post = `POST /plants HTTP/1.1\r\n${FIELDS}Content-Type: application/json\r\n`
  const kinds = {
    'never reading': `GET /plants HTTP/1.1\r\n${FIELDS}\r\n`,
    'slow header': 'GET /plants HTTP/1.1\r\nX: ',
    'slow body': `${post}Content-Length: 60000\r\n\r\n`,
  }
  const latest: Record<string, number> = {}
  const closed: Promise<void>[] = []
  for (const [kind, opening] of Object.entries(kinds)) {
    for (let i = 0; i < count / 3; i++) {
      const { socket } = await RawConnection.open(port)
      const openedAt = performance.now()
      socket.write(opening)
      // One that never reads does not see either that it was dropped.
      if (kind === 'never reading') {
        socket.pause()
        continue
      }
      const drip = setInterval(() => socket.write('x'), 500 + Math.random() * 1000)
      closed.push(
        once(socket, 'close').then(() => {
          clearInterval(drip)
          latest[kind] = (performance.now() - openedAt) / 1000
        }),
      )
    }
    // Until those that never read are stalled, the service is busy with what they asked for.
    await setTimeout(3000)
  }
  process.send!('open')
  await Promise.all(closed)
  process.send!(latest)
}

if (options.port !== undefined) await openSlowClients(Number(options.port), Number(options.slow))
else if (options.slow !== undefined) await resistSlow(Number(options.slow))
else await soak(Number(options.minutes))
