// Sends what once filled the memory of the program, or held it up, from many connections. By hand, on Linux:
//   npm run attacks                          each attack for 30 s
//   npm run attacks -- --only connect --seconds 10
//   npm run attacks -- --only unread-lists --store postgres://user@host/database    which is empty
//   npm run attacks -- --only unread-lists --clients 1000 --lists 1000              of one owner at once
import { connect, type Socket } from 'node:net'
import { loadavg } from 'node:os'
import process from 'node:process'
import { setTimeout } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { fill } from '../support/database/fill.ts'
import { dismiss, nextMessage, startAgain } from '../support/program/again.ts'
import { measureWaits, watchMemory } from '../support/program/normal-client.ts'
import { Program, TOKEN } from '../support/program/program.ts'
import { residentOf } from '../support/program/resident.ts'

const { values: options } = parseArgs({
  options: {
    seconds: { type: 'string', default: '30' },
    only: { type: 'string' },
    /** How many clients attack, if not as many as the attack says. */
    clients: { type: 'string' },
    lists: { type: 'string', default: '32' },
    store: { type: 'string', default: 'memory:' },
    /** The attack of a process of its own, and where it goes. */
    attack: { type: 'string' },
    port: { type: 'string' },
  },
})

const MIB = 2 ** 20

interface Attack {
  readonly clients: number
  /** What each connection sends at first. */
  readonly first: string
  /** What it sends without end after that. */
  readonly endless?: string
  /** Whether it sends a byte each second instead. */
  readonly drips?: true
  /** Whether the client reads what it gets. */
  readonly reads?: true
  /** How many plants of 60 kB there are. */
  readonly plants?: number
}

const PROBE = 'GET /livez HTTP/1.1\r\nHost: a\r\n\r\n'
const BLANKS = ' '.repeat(7000)
const REFUSED = `GET /livez HTTP/1.1\r\nOrigin: a${BLANKS}b\r\nX-Request-Id: a${BLANKS}b\r\nno field\r\n\r\n`
const AUTHORIZED = `Host: a\r\nAuthorization: Bearer ${TOKEN}\r\n`
/** The response is more than the kernel takes for a client that reads nothing. */
const LIST = `GET /plants HTTP/1.1\r\n${AUTHORIZED}\r\n`
const LARGE_PLANTS = 1000
const POST = `POST /plants HTTP/1.1\r\n${AUTHORIZED}Content-Type: application/json\r\n`
const ANYTHING = 'x'.repeat(65_536)

/** 64 KiB of requests, sent at once. */
function pipelined(path: string): Attack {
  const request = `GET ${path} HTTP/1.1\r\nHost: a\r\n\r\n`
  return { clients: 200, first: request.repeat(Math.floor(65_536 / request.length)) }
}

const ATTACKS: Readonly<Record<string, Attack>> = {
  'pipelined-probes': pipelined('/livez'),
  'pipelined-refusals': pipelined('/plants'),
  'empty-lines': {
    clients: 50,
    first: PROBE,
    endless: '\r\n'.repeat(32_768) + PROBE,
    reads: true,
  },
  blanks: { clients: 50, first: REFUSED, reads: true },
  malformed: { clients: 50, first: 'BAD\r\n\r\n', endless: ANYTHING, reads: true },
  'malformed-behind-response': {
    clients: 32,
    first: `${LIST}BAD\r\n\r\n`,
    endless: ANYTHING,
    plants: LARGE_PLANTS,
  },
  connect: { clients: 50, first: 'CONNECT a:80 HTTP/1.1\r\nHost: a\r\n\r\n', endless: ANYTHING, reads: true },
  'connect-behind-response': {
    clients: 32,
    first: `${LIST}CONNECT a:80 HTTP/1.1\r\nHost: a\r\n\r\n`,
    endless: ANYTHING,
    plants: LARGE_PLANTS,
  },
  'one-byte-chunks': {
    clients: 100,
    first: `${POST}Transfer-Encoding: chunked\r\n\r\n${'1\r\n \r\n'.repeat(65_535)}`,
  },
  'slow-headers': { clients: 700, first: 'GET /plants HTTP/1.1\r\nX: ', drips: true, reads: true },
  'slow-bodies': { clients: 700, first: `${POST}Content-Length: 60000\r\n\r\n`, drips: true, reads: true },
  'unread-lists': { clients: 100, first: LIST, plants: LARGE_PLANTS },
}

/** Attacks until the process that wants it has gone. A connection that ends is opened anew. */
async function attack({ clients, first, endless, drips, reads }: Attack, port: number): Promise<void> {
  process.on('disconnect', () => process.exit())
  const bytes = endless === undefined ? undefined : Buffer.from(endless)

  function open(): void {
    const socket = connect({ port, host: '127.0.0.1' }).on('error', () => undefined)
    socket.on('close', () => void setTimeout(1).then(open))
    if (reads) socket.resume()
    else socket.pause()
    socket.write(first)
    if (drips) {
      const timer = setInterval(() => socket.write('x'), 1000)
      socket.on('close', () => clearInterval(timer))
    }
    if (bytes !== undefined) socket.on('drain', () => send(socket, bytes)).once('connect', () => send(socket, bytes))
  }

  for (let client = 0; client < Number(options.clients ?? clients); client++) open()
  await setTimeout(500)
  process.send!('attacking')
}

function send(socket: Socket, bytes: Buffer): void {
  while (socket.writable && socket.write(bytes));
}

async function measure(name: string): Promise<boolean> {
  const seconds = Number(options.seconds)
  const limits = { PLANT_STORE_MAX_LISTS_PER_OWNER: options.lists, PLANT_STORE_MAX_CONNECTIONS: '10000' }
  const program = await Program.start({ PLANT_STORE_URL: options.store, ...limits })
  const plant = { name: 'x'.repeat(60_000) }
  await fill(program.port, TOKEN, ATTACKS[name]!.plants ?? 0, () => plant)
  // V8 comes to keep more memory for young objects on any busy server.
  await Promise.all(Array.from({ length: 20 }, () => measureWaits(program, '/plants?limit=1', 3)))
  await setTimeout(1000)
  const [before, alone] = [residentOf(program.child), await measureWaits(program, '/livez', 2)]
  const memory = watchMemory(program)
  const attacking = startAgain(import.meta.url, '--attack', name, '--port', String(program.port))
  await nextMessage(attacking)
  const beside = await measureWaits(program, '/livez', seconds)
  await dismiss(attacking)
  const growth = Math.round((memory.stop() - before) / MIB)
  console.log(name.padEnd(26), { growthMiB: growth, alone, beside })
  await program.end()
  return growth < 120 && beside.p99 < 3 * alone.p99 && beside.longest < 150
}

if (options.attack !== undefined) {
  await attack(ATTACKS[options.attack]!, Number(options.port))
} else {
  console.log(`Node ${process.version}, ${options.seconds} s each, load average ${loadavg()[0]!.toFixed(1)}`)
  const results: boolean[] = []
  for (const name of Object.keys(ATTACKS)) {
    if (options.only === undefined || options.only === name) results.push(await measure(name))
  }
  if (results.includes(false)) process.exitCode = 1
}
