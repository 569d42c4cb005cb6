// Attacks the program from many connections, and looks how long a client that means well waits meanwhile, and how much
// memory the program takes. By hand, on Linux, with Node 24 or later: on Node 20, many fields and one-byte chunks miss.
//   npm run attacks                          each attack for 10 s, a quarter of an hour
//   npm run attacks -- --only 300x20 --seconds 30       those whose name has this in it
//   npm run attacks -- --only unread-lists --store postgres://user@host/database    which is empty
//   npm run attacks -- --only unread-lists --clients 1000 --lists 1000              of one owner at once
import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { createServer } from 'node:http'
import { connect, type AddressInfo, type Socket } from 'node:net'
import { loadavg } from 'node:os'
import process from 'node:process'
import { setTimeout } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { createPlantStore } from '../../src/index.ts'
import { fill } from '../support/database/fill.ts'
import { measureWaits, residentOf, watchMemory, type Asked } from '../support/program/normal-client.ts'
import { Program, TOKEN } from '../support/program/program.ts'
import { RawConnection } from '../support/wire/raw-connection.ts'

const { values: options } = parseArgs({
  options: {
    seconds: { type: 'string', default: '10' },
    only: { type: 'string', default: '' },
    /** How many clients attack, if not as many as the attack says. */
    clients: { type: 'string' },
    lists: { type: 'string', default: '32' },
    store: { type: 'string', default: 'memory:' },
    /** What a process of its own does: an attack, and where it goes, or a server of `node:http`. */
    attack: { type: 'string' },
    port: { type: 'string' },
    bare: { type: 'boolean', default: false },
  },
})

const MIB = 2 ** 20

interface Attack {
  readonly clients: number
  /** What each connection sends at first. */
  readonly first: string
  /** It sends that again once so many responses have come. */
  readonly responses?: number
  /** It does that on a new connection. */
  readonly anew?: true
  /** What it sends without end after that. */
  readonly endless?: string
  /** Whether it sends a byte each second instead. */
  readonly drips?: true
  /** Whether the client reads what it gets. */
  readonly reads?: true
  /** How many plants of 60 kB there are. */
  readonly plants?: number
  /** Whether one client wakes the guard before. */
  readonly isGuarded?: true
  /** Whether it goes against the service in a server of `node:http`. */
  readonly isBare?: true
  /** What the client that means well sends, if it is no list of ten. */
  readonly asked?: Asked
  /** What it may wait, and how much memory the program may take, if not as for the others. */
  readonly limits?: Partial<typeof LIMITS>
}

const LIMITS = { p99: 50, longest: 500, first: 2000, growthMiB: 120 }

const AUTHORIZED = `Host: a\r\nAuthorization: Bearer ${TOKEN}\r\n`
const PROBE = 'GET /livez HTTP/1.1\r\nHost: a\r\n\r\n'
const BLANKS = ' '.repeat(7000)
const REFUSED = `GET /livez HTTP/1.1\r\nOrigin: a${BLANKS}b\r\nX-Request-Id: a${BLANKS}b\r\nno field\r\n\r\n`
/** The response is more than the kernel takes for a client that reads nothing. */
const LIST = `GET /plants HTTP/1.1\r\n${AUTHORIZED}\r\n`
const LARGE_PLANTS = 1000
const POST = `POST /plants HTTP/1.1\r\n${AUTHORIZED}Content-Type: application/json\r\n`
const ANYTHING = 'x'.repeat(65_536)
const FIELDS = `GET /livez HTTP/1.1\r\nHost: a\r\n${Array.from({ length: 2600 }, (_, n) => `${n.toString(36)}:\r\n`).join('')}\r\n`

const REQUESTS: Readonly<Record<string, string>> = {
  livez: PROBE,
  none: 'GET /nothing HTTP/1.1\r\nHost: a\r\n\r\n',
  refused: `GET /plants HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer d3Jvbmc=\r\n\r\n`,
  list: `GET /plants?limit=10 HTTP/1.1\r\n${AUTHORIZED}\r\n`,
}

const ASKED: Readonly<Record<string, Asked>> = {
  get: {},
  cookies: { headers: { Cookie: `a=${'x'.repeat(1500)}` } },
  'post-4k': { plant: 'x'.repeat(4000) },
  'post-60k': { plant: 'x'.repeat(60_000) },
  anew: { isAnew: true },
}

/** So many clients that send so many requests at once, and again once all are answered. */
function pipelined(clients: number, request: string, count: number): Attack {
  return { clients, first: request.repeat(count), responses: count, reads: true }
}

function* attacks(): Generator<[name: string, attack: Attack]> {
  for (const [what, request] of Object.entries(REQUESTS)) {
    for (const clients of [50, 300, 900]) yield [`${clients}x20-${what}`, pipelined(clients, request, 20)]
    yield [`50x99-${what}`, pipelined(50, request, 99)]
    yield [`400x9-${what}`, pipelined(400, request, 9)]
    yield [`900x2-${what}`, pipelined(900, request, 2)]
    yield [`900x60-${what}-unread`, { clients: 900, first: request.repeat(60) }]
    yield [`300x20-${what}-anew`, { ...pipelined(300, request, 20), anew: true }]
  }
  yield ['900x60-openapi-unread', { clients: 900, first: PROBE.replace('livez', 'openapi.json').repeat(60) }]
  yield ['64KiB-livez-unread', { clients: 200, first: PROBE.repeat(Math.floor(65_536 / PROBE.length)) }]
  for (const clients of [100, 900]) {
    for (const [what, asked] of Object.entries(ASKED)) {
      const limits = { p99: 100 }
      yield [`guarded-${what}-${clients}`, { ...pipelined(clients, PROBE, 20), isGuarded: true, asked, limits }]
    }
  }
  const limits = { p99: 1000, longest: 3000, first: 3000, growthMiB: 250 }
  yield ['many-fields', { ...pipelined(900, FIELDS, 4), limits }]
  const bare = { isBare: true, limits: { p99: 100, longest: 1000, growthMiB: 250 } } as const
  yield ['bare-50x99', { ...pipelined(50, REQUESTS['refused']!, 99), ...bare }]
  yield ['bare-300x20', { ...pipelined(300, REQUESTS['refused']!, 20), ...bare }]
  yield ['empty-lines', { clients: 50, first: PROBE, endless: '\r\n'.repeat(32_768) + PROBE, reads: true }]
  yield ['blanks', { clients: 50, first: REFUSED, reads: true }]
  yield ['malformed', { clients: 50, first: 'BAD\r\n\r\n', endless: ANYTHING, reads: true }]
  yield ['connect', { clients: 50, first: 'CONNECT a:80 HTTP/1.1\r\nHost: a\r\n\r\n', endless: ANYTHING, reads: true }]
  // With plants of this size a list of ten is a long one, which waits for those of its owner.
  const large = { plants: LARGE_PLANTS, asked: { path: '/livez' } }
  const behind = { clients: 32, endless: ANYTHING, ...large }
  yield ['malformed-behind-response', { ...behind, first: `${LIST}BAD\r\n\r\n` }]
  yield ['connect-behind-response', { ...behind, first: `${LIST}CONNECT a:80 HTTP/1.1\r\nHost: a\r\n\r\n` }]
  const chunks = `${POST}Transfer-Encoding: chunked\r\n\r\n${'1\r\n \r\n'.repeat(65_535)}`
  for (const clients of [10, 100]) yield [`one-byte-chunks-${clients}`, { clients, first: chunks }]
  // 40 chunks of each are read before a request that comes then.
  yield ['one-byte-chunks-900', { clients: 900, first: chunks, limits: { p99: 500, growthMiB: 200 } }]
  yield ['slow-headers', { clients: 700, first: 'GET /plants HTTP/1.1\r\nX: ', drips: true, reads: true }]
  yield ['slow-bodies', { clients: 700, first: `${POST}Content-Length: 60000\r\n\r\n`, drips: true, reads: true }]
  yield ['unread-lists', { clients: 100, first: LIST, ...large }]
}

const ATTACKS = new Map(attacks())

/** Attacks until the process that wants it has gone. A connection that ends is opened anew. */
function attack(attack: Attack, port: number): void {
  process.on('disconnect', () => process.exit())
  const { clients, first, responses, anew, endless, drips, reads } = attack
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
    if (bytes !== undefined) socket.on('drain', () => send(socket, bytes)).once('connect', () => send(socket, bytes))
  }

  for (let client = 0; client < Number(options.clients ?? clients); client++) open()
  process.send!('attacking')
}

/** Calls `listener` each time that so many responses have come, however they are cut into pieces. */
function onResponses(socket: Socket, count: number, listener: () => void): void {
  const LINE = 'HTTP/1.1 '
  let left = count
  let tail = ''
  socket.setEncoding('latin1').on('data', (piece: string) => {
    const text = tail + piece
    left -= text.split(LINE).length - 1
    tail = text.endsWith(LINE) ? '' : text.slice(1 - LINE.length)
    if (left > 0) return
    left = count
    listener()
  })
}

function send(socket: Socket, bytes: Buffer): void {
  while (socket.writable && socket.write(bytes));
}

/** Serves the module in a server of `node:http`, until the process that wants it has gone. */
async function serveBare(): Promise<void> {
  process.on('disconnect', () => process.exit())
  const server = createServer(createPlantStore({ tokens: { [TOKEN]: 'ada' } })).listen(0, '127.0.0.1')
  await once(server, 'listening')
  process.send!((server.address() as AddressInfo).port)
}

/** Starts this program again in a process of its own, which takes nothing from this one, with more arguments. */
function startAgain(...args: string[]): ChildProcess {
  const own = [...process.execArgv, ...process.argv.slice(1)]
  return spawn(process.execPath, [...own, ...args], { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] })
}

/** Ends such a process. */
async function dismiss(child: ChildProcess): Promise<void> {
  child.disconnect()
  await once(child, 'exit')
}

async function startBare() {
  const child = startAgain('--bare')
  const [port] = (await once(child, 'message')) as [number]
  return { child, port, end: () => dismiss(child) }
}

async function measure(name: string, { plants, isGuarded, isBare, asked, limits }: Attack): Promise<boolean> {
  const settings = { PLANT_STORE_MAX_LISTS_PER_OWNER: options.lists, PLANT_STORE_URL: options.store }
  const target = isBare ? await startBare() : await Program.start(settings, ['--max-semi-space-size=16'])
  const { child, port } = target
  await fill(port, TOKEN, plants ?? 10, () => ({ name: 'x'.repeat(plants === undefined ? 10 : 60_000) }))
  // V8 comes to keep more memory for young objects on any busy server.
  await Promise.all(Array.from({ length: 20 }, () => measureWaits(port, asked, 2, 0)))
  const [before, alone] = [residentOf(child), await measureWaits(port, asked, 2)]
  const stopWatching = watchMemory(child)
  if (isGuarded) (await RawConnection.open(port)).send(PROBE.repeat(150))
  const attacking = startAgain('--attack', name, '--port', String(port))
  await once(attacking, 'message')
  const beside = await measureWaits(port, asked, Number(options.seconds))
  await dismiss(attacking)
  const growthMiB = Math.round((stopWatching() - before) / MIB)
  await target.end()
  const most = { ...LIMITS, ...limits }
  const { p99, longest, first } = beside
  const isHeld = p99 <= most.p99 && longest <= most.longest && first <= most.first && growthMiB <= most.growthMiB
  console.log(name.padEnd(26), isHeld ? '' : 'missed', JSON.stringify({ growthMiB, alone, beside }))
  return isHeld
}

if (options.attack !== undefined) {
  attack(ATTACKS.get(options.attack)!, Number(options.port))
} else if (options.bare) {
  await serveBare()
} else {
  console.log(`Node ${process.version}, ${options.seconds} s each, load average ${loadavg()[0]!.toFixed(1)}`)
  for (const [name, attack] of ATTACKS) {
    if (name.includes(options.only) && !(await measure(name, attack))) process.exitCode = 1
  }
}
