// Storage that fails under load and comes back: a lock, a full disk, a file that is moved away. The program must keep
// what it acknowledged, and say within 2 seconds whether it is ready.
//   npm run outages -- --seconds 60   how long another process has the lock
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { appendFileSync, mkdirSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import process from 'node:process'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { runByHand, type Scope } from '../support/child.ts'
import { temporaryDirectory } from '../support/temporary-file.ts'
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

/** Asks ten times a second from now on whether the program is ready. */
class Watch {
  readonly #answers: { readonly at: number; readonly status: number }[] = []
  readonly #ended: Promise<void>
  #isStopped = false

  constructor(program: Program) {
    this.#ended = this.#run(program)
  }

  async #run(program: Program): Promise<void> {
    while (!this.#isStopped) {
      const { status } = await program.fetch('/readyz')
      this.#answers.push({ at: performance.now(), status })
      await sleep(100)
    }
  }

  async stop(): Promise<void> {
    this.#isStopped = true
    await this.#ended
  }

  /** How many ms after a change the last answer came that was not that. */
  lateness(from: number, to: number, status: number): number {
    const wrong = this.#answers.filter((it) => it.at > from && it.at < to && it.status !== status)
    return Math.round(Math.max(0, ...wrong.map(({ at }) => at - from)))
  }
}

/** @param warnings how many the program must log */
async function run(t: Scope, name: string, path: string, warnings: number, outage: Outage): Promise<void> {
  async function start(): Promise<Program> {
    const program = await Program.start({ PLANT_STORE_URL: `sqlite:${path}` })
    t.after(() => program.end())
    return program
  }
  const program = await start()
  const workload = new Workload()
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
  console.log(name, { acknowledged, refused, unknown, lateMs, lines: program.stderr.all.length })
  assert.ok(lateMs.unready < LATE_MS && lateMs.ready < LATE_MS, 'readyz was not right in time')
  assert.ok(refused > 0, 'nothing was refused')
  assert.equal(program.stderr.all.filter((line) => line.includes('"event":"warning"')).length, warnings)

  program.child.kill('SIGKILL')
  await program.ended
  await workload.finish(await start())
}

/** Fills the disk with a file. */
function fill(path: string): void {
  try {
    for (;;) appendFileSync(path, Buffer.alloc(4096))
  } catch (error) {
    assert.equal((error as NodeJS.ErrnoException).code, 'ENOSPC')
  }
}

await runByHand(async (t) => {
  const folder = temporaryDirectory(t)
  const locked = join(folder, 'locked.db')
  const { DatabaseSync } = process.getBuiltinModule('node:sqlite')
  let other: InstanceType<typeof DatabaseSync>
  await run(t, 'lock', locked, 0, {
    begin() {
      other = new DatabaseSync(locked, { timeout: 5000 })
      other.exec('BEGIN IMMEDIATE')
    },
    seconds: SECONDS,
    end: () => other.close(),
  })

  const moved = join(folder, 'moved.db')
  await run(t, 'move', moved, 2, {
    begin: () => renameSync(moved, `${moved}.away`),
    seconds: 10,
    end: () => renameSync(`${moved}.away`, moved),
  })

  const disk = join(folder, 'disk')
  mkdirSync(disk)
  // Only root may do so.
  execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=60m', 'tmpfs', disk])
  t.after(() => execFileSync('umount', [disk]))
  const ballast = join(disk, 'ballast')
  await run(t, 'full disk of 60 MB', join(disk, 'plants.db'), 0, {
    begin: () => fill(ballast),
    seconds: 20,
    end: () => rmSync(ballast),
  })
})
