// Storage that fails under load and comes back: a lock, a full disk, a file that is moved away. The program must keep
// what it acknowledged, and say within 2 seconds whether it is ready.
//   npm run outages -- --seconds 60   how long another process has the lock
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { appendFileSync, mkdirSync, mkdtempSync, renameSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import process from 'node:process'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { Program } from '../support/program/program.ts'
import { Workload } from '../support/database/histories/workload.ts'

const { values } = parseArgs({ options: { seconds: { type: 'string', default: '60' } } })
const SECONDS = Number(values.seconds)

/** How late `/readyz` may be right. */
const LATE_MS = 2000
const CLIENTS = 32

interface Outage {
  /** Takes the storage away. */
  readonly begin: () => void
  readonly seconds: number
  /** Gives it back. */
  readonly end: () => void
}

/** Whether the program says that it is ready, from now on, ten times a second. */
class Watch {
  readonly samples: { readonly askedAt: number; readonly status: number; readonly ms: number }[] = []
  readonly #ended: Promise<void>
  #isStopped = false

  constructor(program: Program) {
    this.#ended = this.#run(program)
  }

  async #run(program: Program): Promise<void> {
    while (!this.#isStopped) {
      const askedAt = performance.now()
      const { status } = await program.fetch('/readyz')
      this.samples.push({ askedAt, status, ms: performance.now() - askedAt })
      await sleep(100)
    }
  }

  async stop(): Promise<void> {
    this.#isStopped = true
    await this.#ended
  }

  /** How many ms after a change the last answer came that was not that. */
  lateness(from: number, to: number, status: number): number {
    const wrong = this.samples
      .filter(({ askedAt, ms }) => askedAt + ms > from && askedAt + ms < to)
      .filter((it) => it.status !== status)
    return Math.round(Math.max(0, ...wrong.map(({ askedAt, ms }) => askedAt + ms - from)))
  }
}

/** How many lines the program has logged, by event. */
function countLines(program: Program): Record<string, number> {
  const counts: Record<string, number> = { all: program.stderr.all.length }
  for (const line of program.stderr.all) {
    const { event } = JSON.parse(line) as { event: string }
    counts[event] = (counts[event] ?? 0) + 1
  }
  return counts
}

/** @param warnings how many the program must log */
async function run(name: string, path: string, warnings: number, outage: Outage): Promise<void> {
  const environment = { PLANT_STORE_URL: `sqlite:${path}` }
  const program = await Program.start(environment)
  const workload = new Workload()
  try {
    workload.start(program, CLIENTS)
    const watch = new Watch(program)
    await workload.progress(200)
    outage.begin()
    const beganAt = performance.now()
    await sleep(outage.seconds * 1000)
    outage.end()
    const endedAt = performance.now()
    await sleep(2 * LATE_MS)
    await workload.progress(200)
    await watch.stop()
    const lateMs = { unready: watch.lateness(beganAt, endedAt, 503), ready: watch.lateness(endedAt, Infinity, 200) }
    const { acknowledged, refused, unknown } = workload
    const lines = countLines(program)
    console.log(name, { acknowledged, refused, unknown, lateMs, lines })
    assert.ok(lateMs.unready < LATE_MS && lateMs.ready < LATE_MS, 'readyz was not right in time')
    assert.ok(refused > 0, 'nothing was refused')
    assert.equal(lines['warning'] ?? 0, warnings)
  } finally {
    program.child.kill('SIGKILL')
    await program.ended
  }
  const restarted = await Program.start(environment)
  try {
    await workload.finish(restarted)
  } finally {
    await restarted.end()
  }
}

/** Fills the disk with a file. */
function fill(path: string): void {
  try {
    for (;;) appendFileSync(path, Buffer.alloc(4096))
  } catch (error) {
    assert.equal((error as NodeJS.ErrnoException).code, 'ENOSPC')
  }
}

const folder = mkdtempSync(join(tmpdir(), 'plant-store-outages-'))
try {
  const locked = join(folder, 'locked.db')
  const { DatabaseSync } = process.getBuiltinModule('node:sqlite')
  let other: InstanceType<typeof DatabaseSync>
  await run('lock', locked, 0, {
    begin() {
      other = new DatabaseSync(locked, { timeout: 5000 })
      other.exec('BEGIN IMMEDIATE')
    },
    seconds: SECONDS,
    end: () => other.close(),
  })

  const moved = join(folder, 'moved.db')
  await run('move', moved, 2, {
    begin: () => renameSync(moved, `${moved}.away`),
    seconds: 10,
    end: () => renameSync(`${moved}.away`, moved),
  })

  const disk = join(folder, 'disk')
  mkdirSync(disk)
  // Only root may do so.
  execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=60m', 'tmpfs', disk])
  try {
    const ballast = join(disk, 'ballast')
    await run('full disk of 60 MB', join(disk, 'plants.db'), 0, {
      begin: () => fill(ballast),
      seconds: 20,
      end: () => rmSync(ballast),
    })
  } finally {
    execFileSync('umount', [disk])
  }
} finally {
  rmSync(folder, { recursive: true })
}
