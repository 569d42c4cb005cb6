// What other requests see while clients read long lists as fast as they can. By hand, with what `npm run build` made:
//   node --import tsx test/long/lists.ts                  ten clients, lists of a million plants, memory store
//   node --import tsx test/long/lists.ts --store sqlite   the same from a file
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { Agent, get, type IncomingMessage, type RequestOptions } from 'node:http'
import { loadavg, tmpdir } from 'node:os'
import { join } from 'node:path'
import process from 'node:process'
import { createInterface } from 'node:readline'
import { setTimeout } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { sqliteStore } from '../../src/stores/sqlite/sqlite-store.ts'
import { fill } from '../support/database/fill.ts'

const { values: options } = parseArgs({
  options: {
    store: { type: 'string', default: 'memory' },
    plants: { type: 'string', default: '1000000' },
    clients: { type: 'string', default: '10' },
    seconds: { type: 'string', default: '10' },
    server: { type: 'string', default: fileURLToPath(new URL('../../dist/server.js', import.meta.url)) },
    /** Where the clients read, in their own process. */
    port: { type: 'string' },
  },
})

const PLANTS = Number(options.plants)
const TOKEN = 'secret'
const HEADERS = { Authorization: `Bearer ${TOKEN}` }
const nameOf = (n: number): string => `Monstera deliciosa ${n}`
const jsonOf = (n: number): string => `{"name":"${nameOf(n)}","tag":"tropical"}`

async function open(options: RequestOptions): Promise<IncomingMessage> {
  const [response] = (await once(get(options), 'response')) as [IncomingMessage]
  return response
}

/** Reads one list after the other, and counts their bytes. */
async function read(port: string): Promise<void> {
  let bytes = 0
  process.on('message', () => process.send!(bytes))
  process.on('disconnect', () => process.exit())
  const agent = new Agent({ keepAlive: true })
  const list = async (): Promise<never> => {
    for (;;) {
      const response = await open({ port, path: '/plants', headers: HEADERS, agent })
      response.on('data', (chunk: Buffer) => (bytes += chunk.length))
      await once(response, 'end')
    }
  }
  await Promise.all(Array.from({ length: Number(options.clients) }, list))
}

async function fillFile(path: string): Promise<void> {
  const store = sqliteStore(path)
  for (let n = 0; n < PLANTS; n += 1000) {
    const group = Array.from({ length: Math.min(1000, PLANTS - n) }, (_, i) => n + i)
    await Promise.all(
      group.map(async (id) => store.create('ada', { id: BigInt(id), name: nameOf(id), tag: 'tropical' })),
    )
  }
  await store.close()
}

/** Asks again and again whether the program lives, and says how many milliseconds the answers took. */
async function probe(port: number, seconds: number): Promise<{ p50: number; p99: number; max: number }> {
  const agent = new Agent({ keepAlive: true })
  const times: number[] = []
  for (const end = performance.now() + seconds * 1000; performance.now() < end;) {
    const start = performance.now()
    await once((await open({ port, path: '/livez', agent })).resume(), 'end')
    times.push(performance.now() - start)
    await setTimeout(5)
  }
  agent.destroy()
  times.sort((a, b) => a - b)
  const at = (share: number): number => Number(times[Math.floor((times.length - 1) * share)]!.toFixed(1))
  return { p50: at(0.5), p99: at(0.99), max: at(1) }
}

async function run(): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'plant-store-lists-'))
  const path = join(folder, 'plants.db')
  if (options.store === 'sqlite') await fillFile(path)
  const environment = {
    PORT: '0',
    PLANT_STORE_TOKENS: `ada:${TOKEN}`,
    PLANT_STORE_URL: options.store === 'sqlite' ? `sqlite:${path}` : 'memory:',
  }
  const program = spawn(process.execPath, [options.server], { env: environment, stdio: ['ignore', 'pipe', 'ignore'] })
  const [line] = (await once(createInterface(program.stdout), 'line')) as [string]
  const { port } = new URL(line.split(' ').at(-1)!)
  if (options.store === 'memory') await fill(Number(port), TOKEN, PLANTS, (n) => ({ name: nameOf(n), tag: 'tropical' }))

  console.log(`Node ${process.version}, load average ${loadavg()[0]!.toFixed(1)}`)
  console.log('livez alone, ms', await probe(Number(port), 3))
  const args = [fileURLToPath(import.meta.url), '--port', port, '--clients', options.clients]
  const readers = spawn(process.execPath, [...process.execArgv, ...args], {
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  })
  const bytes = async (): Promise<number> => {
    readers.send('how many')
    const [count] = (await once(readers, 'message')) as [number]
    return count
  }
  while ((await bytes()) === 0) await setTimeout(10)
  const before = await bytes()
  const seconds = Number(options.seconds)
  console.log('livez beside the lists, ms', await probe(Number(port), seconds))
  const perPlant = jsonOf(PLANTS - 1).length + 1
  console.log('plants per second', Math.round(((await bytes()) - before) / perPlant / seconds).toLocaleString('en'))
  readers.disconnect()
  program.kill()
  await once(program, 'exit')
  rmSync(folder, { recursive: true })
}

await (options.port === undefined ? run() : read(options.port))
