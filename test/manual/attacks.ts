// Attacks the program from many connections, and measures the latency of a well-behaved client and the memory usage of
// the program. Run it manually, on Linux, with Node 24 or later: on Node 20, the attacks `many-fields` and
// `one-byte-chunks` exceed their limits.
//   npm run attacks                          runs each attack for 10 s, in total for about 15 minutes
//   npm run attacks -- --only 300x20 --seconds 30       runs the attacks whose name contains this text
//   npm run attacks -- --only unread-lists --store postgres://user@host/database    requires an empty database
//   npm run attacks -- --only unread-lists --clients 1000 --lists 1000              1,000 concurrent lists of one owner
import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { createServer } from 'node:http'
import { connect, type AddressInfo, type Socket } from 'node:net'
import { loadavg } from 'node:os'
import process from 'node:process'
import { setTimeout } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { createPlantStore } from '../../src/index.ts'
import { createPlants } from '../support/database/create-plants.ts'
import {
  measureLatencies,
  readResidentBytes,
  trackPeakMemory,
  type RequestOptions,
} from '../support/program/measure-latencies.ts'
import { Program, TOKEN } from '../support/program/program.ts'
import { RawConnection } from '../support/wire/raw-connection.ts'

const { values: options } = parseArgs({
  options: {
    seconds: { type: 'string', default: '10' },
    only: { type: 'string', default: '' },
    /** Overrides the number of clients of the attack. */
    clients: { type: 'string' },
    lists: { type: 'string', default: '32' },
    store: { type: 'string', default: 'memory:' },
    /** For child processes: the attack and its port, or `--bare` for a `node:http` server. */
    attack: { type: 'string' },
    port: { type: 'string' },
    bare: { type: 'boolean', default: false },
  },
})

const MIB = 2 ** 20

interface Attack {
  readonly clients: number
  /** The bytes that each connection sends first. */
  readonly first: string
  /** Send `first` again after this number of responses. */
  readonly responseCount?: number
  /** Open a new connection before sending `first` again. */
  readonly reconnects?: true
  /** The bytes to send endlessly after `first`. */
  readonly endlessPayload?: string
  /** Send one byte per second after `first`. */
  readonly sendsSlowly?: true
  /** Read the responses. */
  readonly readsResponses?: true
  /** Store this number of plants of 60 kB. */
  readonly largePlantCount?: number
  /** Let a client activate the overload guard before the attack. */
  readonly isThrottled?: true
  /** Attack the module in a plain `node:http` server. */
  readonly isNodeServer?: true
  /** The requests of the well-behaved client, instead of lists of ten plants. */
  readonly clientOptions?: RequestOptions
  /** Limits for latency (ms) and memory growth (MiB) that differ from the defaults. */
  readonly limits?: Partial<typeof DEFAULT_LIMITS>
}

const DEFAULT_LIMITS = { p99: 50, longest: 500, first: 2000, growthMiB: 120 }

const AUTHORIZED = `Host: a\r\nAuthorization: Bearer ${TOKEN}\r\n`
const LIVENESS_REQUEST = 'GET /livez HTTP/1.1\r\nHost: a\r\n\r\n'
const SPACES = ' '.repeat(7000)
const REJECTED_REQUEST = `GET /livez HTTP/1.1\r\nOrigin: a${SPACES}b\r\nX-Request-Id: a${SPACES}b\r\nno field\r\n\r\n`
/** With large plants, the response exceeds the socket buffers of a client that never reads. */
const LIST = `GET /plants HTTP/1.1\r\n${AUTHORIZED}\r\n`
const LARGE_PLANT_COUNT = 1000
const POST = `POST /plants HTTP/1.1\r\n${AUTHORIZED}Content-Type: application/json\r\n`
const ARBITRARY_BYTES = 'x'.repeat(65_536)
const MANY_FIELDS_REQUEST = `GET /livez HTTP/1.1\r\nHost: a\r\n${Array.from({ length: 2600 }, (_, n) => `${n.toString(36)}:\r\n`).join('')}\r\n`

const REQUESTS: Readonly<Record<string, string>> = {
  livez: LIVENESS_REQUEST,
  none: 'GET /nothing HTTP/1.1\r\nHost: a\r\n\r\n',
  refused: `GET /plants HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer d3Jvbmc=\r\n\r\n`,
  list: `GET /plants?limit=10 HTTP/1.1\r\n${AUTHORIZED}\r\n`,
}

const CLIENT_OPTIONS: Readonly<Record<string, RequestOptions>> = {
  get: {},
  cookies: { headers: { Cookie: `a=${'x'.repeat(1500)}` } },
  'post-4k': { plantName: 'x'.repeat(4000) },
  'post-60k': { plantName: 'x'.repeat(60_000) },
  anew: { reconnects: true },
}

/** Creates an attack whose clients each pipeline `count` requests, and repeat that after `count` responses. */
function createPipelinedAttack(clients: number, request: string, count: number): Attack {
  return { clients, first: request.repeat(count), responseCount: count, readsResponses: true }
}

function* createAttacks(): Generator<[name: string, attack: Attack]> {
  for (const [what, request] of Object.entries(REQUESTS)) {
    for (const clients of [50, 300, 900]) yield [`${clients}x20-${what}`, createPipelinedAttack(clients, request, 20)]
    yield [`50x99-${what}`, createPipelinedAttack(50, request, 99)]
    yield [`400x9-${what}`, createPipelinedAttack(400, request, 9)]
    yield [`900x2-${what}`, createPipelinedAttack(900, request, 2)]
    yield [`900x60-${what}-unread`, { clients: 900, first: request.repeat(60) }]
    yield [`300x20-${what}-anew`, { ...createPipelinedAttack(300, request, 20), reconnects: true }]
  }
  yield ['900x60-openapi-unread', { clients: 900, first: LIVENESS_REQUEST.replace('livez', 'openapi.json').repeat(60) }]
  yield [
    '64KiB-livez-unread',
    { clients: 200, first: LIVENESS_REQUEST.repeat(Math.floor(65_536 / LIVENESS_REQUEST.length)) },
  ]
  for (const clients of [100, 900]) {
    for (const [what, asked] of Object.entries(CLIENT_OPTIONS)) {
      const limits = { p99: 100 }
      yield [
        `guarded-${what}-${clients}`,
        { ...createPipelinedAttack(clients, LIVENESS_REQUEST, 20), isThrottled: true, clientOptions: asked, limits },
      ]
    }
  }
  const limits = { p99: 1000, longest: 3000, first: 3000, growthMiB: 250 }
  yield ['many-fields', { ...createPipelinedAttack(900, MANY_FIELDS_REQUEST, 4), limits }]
  const nodeServer = { isNodeServer: true, limits: { p99: 100, longest: 1000, growthMiB: 250 } } as const
  yield ['bare-50x99', { ...createPipelinedAttack(50, REQUESTS['refused']!, 99), ...nodeServer }]
  yield ['bare-300x20', { ...createPipelinedAttack(300, REQUESTS['refused']!, 20), ...nodeServer }]
  yield [
    'empty-lines',
    {
      clients: 50,
      first: LIVENESS_REQUEST,
      endlessPayload: '\r\n'.repeat(32_768) + LIVENESS_REQUEST,
      readsResponses: true,
    },
  ]
  yield ['blanks', { clients: 50, first: REJECTED_REQUEST, readsResponses: true }]
  yield ['malformed', { clients: 50, first: 'BAD\r\n\r\n', endlessPayload: ARBITRARY_BYTES, readsResponses: true }]
  yield [
    'connect',
    {
      clients: 50,
      first: 'CONNECT a:80 HTTP/1.1\r\nHost: a\r\n\r\n',
      endlessPayload: ARBITRARY_BYTES,
      readsResponses: true,
    },
  ]
  // With plants of this size, even a list of ten counts as a long list, which waits for other long lists of its owner.
  const largePlants = { largePlantCount: LARGE_PLANT_COUNT, clientOptions: { path: '/livez' } }
  const behindResponse = { clients: 32, endlessPayload: ARBITRARY_BYTES, ...largePlants }
  yield ['malformed-behind-response', { ...behindResponse, first: `${LIST}BAD\r\n\r\n` }]
  yield ['connect-behind-response', { ...behindResponse, first: `${LIST}CONNECT a:80 HTTP/1.1\r\nHost: a\r\n\r\n` }]
  const chunks = `${POST}Transfer-Encoding: chunked\r\n\r\n${'1\r\n \r\n'.repeat(65_535)}`
  for (const clients of [10, 100]) yield [`one-byte-chunks-${clients}`, { clients, first: chunks }]
  // The server reads 40 chunks from each connection before it handles a new request.
  yield ['one-byte-chunks-900', { clients: 900, first: chunks, limits: { p99: 500, growthMiB: 200 } }]
  yield [
    'slow-headers',
    { clients: 700, first: 'GET /plants HTTP/1.1\r\nX: ', sendsSlowly: true, readsResponses: true },
  ]
  yield [
    'slow-bodies',
    { clients: 700, first: `${POST}Content-Length: 60000\r\n\r\n`, sendsSlowly: true, readsResponses: true },
  ]
  yield ['unread-lists', { clients: 100, first: LIST, ...largePlants }]
}

const ATTACKS = new Map(createAttacks())

/** Attacks until the parent process disconnects. Closed connections are reopened. */
function runAttack(attack: Attack, port: number): void {
  process.on('disconnect', () => process.exit())
  const {
    clients,
    first,
    responseCount: responses,
    reconnects: anew,
    endlessPayload: endless,
    sendsSlowly: drips,
    readsResponses: reads,
  } = attack
  const bytes = endless === undefined ? undefined : Buffer.from(endless)

  function open(): void {
    const socket = connect({ port, host: '127.0.0.1' }).on('error', () => undefined)
    socket.on('close', () => void setTimeout(1).then(open))
    if (responses !== undefined) onResponses(socket, responses, () => (anew ? socket.destroy() : socket.write(first)))
    else if (reads) socket.resume()
    else socket.pause()
    socket.write(first)
    if (drips) {
      const timer = setInterval(() => socket.write('x'), 1000)
      socket.on('close', () => clearInterval(timer))
    }
    if (bytes !== undefined)
      socket.on('drain', () => fillSocket(socket, bytes)).once('connect', () => fillSocket(socket, bytes))
  }

  for (let client = 0; client < Number(options.clients ?? clients); client++) open()
  process.send!('attacking')
}

/** Calls `listener` after every `count` responses, however the responses are split into chunks. */
function onResponses(socket: Socket, count: number, listener: () => void): void {
  const STATUS_LINE_START = 'HTTP/1.1 '
  let left = count
  let tail = ''
  socket.setEncoding('latin1').on('data', (piece: string) => {
    const text = tail + piece
    left -= text.split(STATUS_LINE_START).length - 1
    tail = text.endsWith(STATUS_LINE_START) ? '' : text.slice(1 - STATUS_LINE_START.length)
    if (left > 0) return
    left = count
    listener()
  })
}

function fillSocket(socket: Socket, bytes: Buffer): void {
  while (socket.writable && socket.write(bytes));
}

/** Serves the module with `node:http` until the parent process disconnects. */
async function serveWithNode(): Promise<void> {
  process.on('disconnect', () => process.exit())
  const server = createServer(createPlantStore({ tokens: { [TOKEN]: 'ada' } })).listen(0, '127.0.0.1')
  await once(server, 'listening')
  process.send!((server.address() as AddressInfo).port)
}

/** Runs this script with additional arguments in a child process, so that the load doesn't slow down this process. */
function spawnSelf(...args: string[]): ChildProcess {
  const own = [...process.execArgv, ...process.argv.slice(1)]
  return spawn(process.execPath, [...own, ...args], { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] })
}

/** Stops a child process of `spawnSelf`. */
async function stopChild(child: ChildProcess): Promise<void> {
  child.disconnect()
  await once(child, 'exit')
}

async function startNodeServer() {
  const child = spawnSelf('--bare')
  const [port] = (await once(child, 'message')) as [number]
  return { child, port, stop: () => stopChild(child) }
}

async function measureAttack(
  name: string,
  { largePlantCount: plants, isThrottled: isGuarded, isNodeServer: isBare, clientOptions: asked, limits }: Attack,
): Promise<boolean> {
  const settings = { PLANT_STORE_MAX_LISTS_PER_OWNER: options.lists, PLANT_STORE_URL: options.store }
  const target = isBare ? await startNodeServer() : await Program.start(settings, ['--max-semi-space-size=16'])
  const { child, port } = target
  await createPlants(port, TOKEN, plants ?? 10, () => ({ name: 'x'.repeat(plants === undefined ? 10 : 60_000) }))
  // Warm up: under any load, V8 enlarges its young generation.
  await Promise.all(Array.from({ length: 20 }, () => measureLatencies(port, asked, 2, 0)))
  const [memoryBefore, baseline] = [readResidentBytes(child), await measureLatencies(port, asked, 2)]
  const stopTracking = trackPeakMemory(child)
  if (isGuarded) (await RawConnection.open(port)).send(LIVENESS_REQUEST.repeat(150))
  const attacker = spawnSelf('--attack', name, '--port', String(port))
  await once(attacker, 'message')
  const underAttack = await measureLatencies(port, asked, Number(options.seconds))
  await stopChild(attacker)
  const growthMiB = Math.round((stopTracking() - memoryBefore) / MIB)
  await target.stop()
  const maxima = { ...DEFAULT_LIMITS, ...limits }
  const { p99, max: longest, firstMs: first } = underAttack
  const isWithinLimits =
    p99 <= maxima.p99 && longest <= maxima.longest && first <= maxima.first && growthMiB <= maxima.growthMiB
  console.log(
    name.padEnd(26),
    isWithinLimits ? '' : 'missed',
    JSON.stringify({ growthMiB, alone: baseline, beside: underAttack }),
  )
  return isWithinLimits
}

if (options.attack !== undefined) {
  runAttack(ATTACKS.get(options.attack)!, Number(options.port))
} else if (options.bare) {
  await serveWithNode()
} else {
  console.log(`Node ${process.version}, ${options.seconds} s each, load average ${loadavg()[0]!.toFixed(1)}`)
  for (const [name, attack] of ATTACKS) {
    if (name.includes(options.only) && !(await measureAttack(name, attack))) process.exitCode = 1
  }
}
