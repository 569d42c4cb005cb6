// What a reader that stays for long costs: the log of SQLite cannot be emptied while it reads, and is large when it goes.
//   node --import tsx test/long/log.ts                30 seconds of load beside the reader
//   node --import tsx test/long/log.ts --seconds 10   less of it
//   node --import tsx test/long/log.ts --hand-in      with a database that is handed in
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, statSync } from 'node:fs'
import { loadavg, tmpdir } from 'node:os'
import { join } from 'node:path'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import process from 'node:process'
import { setTimeout } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { sqliteStore } from '../../src/stores/sqlite/sqlite-store.ts'

const { values: options } = parseArgs({
  options: {
    seconds: { type: 'string', default: '30' },
    clients: { type: 'string', default: '64' },
    'hand-in': { type: 'boolean', default: false },
  },
})

const READER = `
  const database = new (process.getBuiltinModule('node:sqlite').DatabaseSync)(process.argv[1])
  database.exec('BEGIN; SELECT count(*) FROM plants')
  process.stdout.write('begun')
  process.stdin.once('data', () => process.exit())`

const folder = mkdtempSync(join(tmpdir(), 'plant-store-log-'))
const path = join(folder, 'plants.db')
const { DatabaseSync } = process.getBuiltinModule('node:sqlite')
const store = sqliteStore(options['hand-in'] ? new DatabaseSync(path) : path)
const delay = monitorEventLoopDelay({ resolution: 1 })
delay.enable()
const name = 'x'.repeat(1000)
const counts = { creates: 0, refused: 0, longestMs: 0 }
let last = 0
let isLoaded = true

async function load(): Promise<void> {
  while (isLoaded) {
    // Ids in no order, so that most plants change a page of their own.
    const id = BigInt(last++ * 7919) % 1_000_003n
    const start = performance.now()
    try {
      await store.create('ada', { id, name })
      counts.creates++
    } catch {
      counts.refused++
    }
    counts.longestMs = Math.max(counts.longestMs, performance.now() - start)
  }
}

async function measure(phase: string, seconds: number): Promise<void> {
  await setTimeout(seconds * 1000)
  const logMB = Math.round((statSync(`${path}-wal`, { throwIfNoEntry: false })?.size ?? 0) / 1e6)
  const ms = (ns: number): number => Math.round(ns / 1e6)
  const { creates, refused, longestMs } = counts
  const delayMs = { p99: ms(delay.percentile(99)), max: ms(delay.max) }
  console.log(phase, { logMB, delayMs, creates, refused, longestMs: Math.round(longestMs) })
  Object.assign(counts, { creates: 0, refused: 0, longestMs: 0 })
  delay.reset()
}

console.log(`Node ${process.version}, load average ${loadavg()[0]!.toFixed(1)}`)
const clients = Array.from({ length: Number(options.clients) }, load)
await measure('before the reader', 5)
const reader = spawn(process.execPath, ['-e', READER, path], { stdio: ['pipe', 'pipe', 'ignore'] })
await once(reader.stdout, 'data')
await measure('beside the reader', Number(options.seconds))
reader.kill()
await once(reader, 'exit')
for (let i = 1; i <= 3; i++) await measure(`up to ${i * 5} s after it`, 5)
isLoaded = false
await Promise.all(clients)
await measure('without load', 2)
await store.close()
console.log(`load average ${loadavg()[0]!.toFixed(1)}`)
rmSync(folder, { recursive: true })
