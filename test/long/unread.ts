// What clients cost who read nothing of what they ask for. By hand, on Linux:
//   npm run unread                                           100 clients, lists of plants of 60 kB, memory store
//   npm run unread -- --store=sqlite                         the same from a file
//   npm run unread -- --store=postgres://user@host/database  the same from an empty database
//   npm run unread -- --lists=1000                           as many long lists of one owner at once, in place of 32
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { loadavg, tmpdir } from 'node:os'
import { join } from 'node:path'
import process from 'node:process'
import { setTimeout } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { fill } from '../support/database/fill.ts'
import { dismiss, nextMessage, startAgain } from '../support/program/again.ts'
import { watchMemory } from '../support/program/normal-client.ts'
import { Program, TOKEN } from '../support/program/program.ts'
import { residentOf } from '../support/program/resident.ts'

const { values: options } = parseArgs({
  options: {
    store: { type: 'string', default: 'memory:' },
    clients: { type: 'string', default: '100' },
    plants: { type: 'string', default: '1000' },
    lists: { type: 'string', default: '32' },
    /** What the clients ask for, in their own process, and where. */
    ask: { type: 'string' },
    port: { type: 'string' },
  },
})

const CLIENTS = Number(options.clients)
const MIB = 2 ** 20
const AUTHORIZED = `Host: a\r\nAuthorization: Bearer ${TOKEN}\r\n`

/** Opens the clients, which send their requests and read nothing, until the process that wants them has gone. */
async function ask(request: string): Promise<void> {
  process.on('disconnect', () => process.exit())
  const sockets: Socket[] = []
  for (let i = 0; i < CLIENTS; i++) {
    const socket = connect({ port: Number(options.port), host: '127.0.0.1' }).on('error', () => undefined)
    await once(socket, 'connect')
    socket.pause().write(request)
    sockets.push(socket)
  }
  process.send!('asked')
}

async function startAsking(port: number, request: string): Promise<ChildProcess> {
  const asking = startAgain(import.meta.url, '--ask', request, '--port', String(port))
  await nextMessage(asking)
  return asking
}

function inMiB(bytes: number): number {
  return Math.round(bytes / MIB)
}

async function readNoLists(): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'plant-store-unread-'))
  const url = options.store === 'sqlite' ? `sqlite:${join(folder, 'plants.db')}` : options.store
  const program = await Program.start({ PLANT_STORE_URL: url, PLANT_STORE_MAX_LISTS_PER_OWNER: options.lists })
  const name = 'x'.repeat(60_000)
  await fill(program.port, TOKEN, Number(options.plants), () => ({ name }))
  await setTimeout(2000)
  for (let round = 1; round <= 3; round++) {
    const before = residentOf(program.child)
    const watched = watchMemory(program)
    const asking = await startAsking(program.port, `GET /plants HTTP/1.1\r\n${AUTHORIZED}\r\n`)
    await setTimeout(10_000)
    const during = residentOf(program.child)
    await dismiss(asking)
    await setTimeout(5000)
    const growth = { peak: watched.stop() - before, during: during - before, after: residentOf(program.child) - before }
    const figures = Object.fromEntries(Object.entries(growth).map(([when, bytes]) => [when, inMiB(bytes)]))
    console.log(`round ${round}: ${inMiB(before)} MiB before; growth in MiB`, figures)
  }
  await program.end()
  rmSync(folder, { recursive: true })
}

if (options.ask !== undefined) {
  await ask(options.ask)
} else {
  console.log(`Node ${process.version}, ${CLIENTS} clients, load average ${loadavg()[0]!.toFixed(1)}`)
  await readNoLists()
}
