import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Plant } from '../../../../src/plants/plant.ts'
import { Program } from '../../program/program.ts'
import { createRandom, type Random } from '../../random.ts'

/** What {@link runCrashCycles} found. */
export interface CrashReport {
  /** Creates and deletes that the service had acknowledged when it was killed. */
  creates: number
  deletes: number
  /** Operations that the kill left without an answer: they may have been carried out or not. */
  unanswered: number
  /** Names of plants whose creation was acknowledged, and that are not listed. */
  readonly lostCreates: string[]
  /** Names of plants whose deletion was acknowledged, and that are listed. */
  readonly undoneDeletes: string[]
  /** Names that are listed and that nobody sent so, or that are listed twice or out of order. */
  readonly unsent: string[]
}

interface SentPlant {
  readonly id: bigint
  readonly name: string
  readonly tag: string
  /** Unsure from when an operation is sent until it is answered, or shows in the list after the restart. */
  state: 'present' | 'absent' | 'unsure'
}

/** Every plant that was ever sent, by its name. */
type Ledger = Map<string, SentPlant>

const CONNECTIONS = 16

/**
 * Kills the program with SIGKILL again and again, on one SQLite file and under load, and compares
 * what it lists after each restart with what it had acknowledged.
 * @throws Error if the service does not start, ends by itself or answers an error
 */
export async function runCrashCycles(cycles: number, seed: number): Promise<CrashReport> {
  const directory = mkdtempSync(join(tmpdir(), 'plant-store-crash-'))
  const random = createRandom(seed)
  const ledger: Ledger = new Map()
  const report: CrashReport = {
    creates: 0,
    deletes: 0,
    unanswered: 0,
    lostCreates: [],
    undoneDeletes: [],
    unsent: [],
  }
  try {
    for (let cycle = 0; cycle <= cycles; cycle++) {
      const program = await Program.start({ PLANT_STORE_URL: `sqlite:${join(directory, 'plants.db')}` })
      try {
        compare(await listPlants(program), ledger, report)
        if (cycle < cycles) await loadUntilKilled(program, ledger, report, random)
      } finally {
        program.child.kill('SIGKILL')
        await program.ended
      }
    }
  } finally {
    rmSync(directory, { recursive: true })
  }
  return report
}

/** Reports what is not listed as it was acknowledged, and settles what was unsure by the list. */
function compare(plants: readonly Plant[], ledger: Ledger, report: CrashReport): void {
  const listed = new Set<string>()
  let previous = -(2n ** 63n) - 1n
  for (const { name, tag } of plants) {
    const sent = ledger.get(name)
    if (sent !== undefined && sent.tag === tag && sent.id > previous) listed.add(name)
    else report.unsent.push(name)
    previous = sent?.id ?? previous
  }
  for (const plant of ledger.values()) {
    const isListed = listed.has(plant.name)
    if (plant.state === 'unsure') report.unanswered++
    if (plant.state === 'present' && !isListed) report.lostCreates.push(plant.name)
    if (plant.state === 'absent' && isListed) report.undoneDeletes.push(plant.name)
    plant.state = isListed ? 'present' : 'absent'
  }
}

/** Creates and deletes plants over several connections, and kills the service somewhere in between. */
async function loadUntilKilled(program: Program, ledger: Ledger, report: CrashReport, random: Random): Promise<void> {
  const deletable = [...ledger.values()].filter(({ state }) => state === 'present')
  let answersLeft = 1 + random(200)
  let killed = false

  async function kill(): Promise<void> {
    // Off the beat of the answers: at any point of the work on the groups after the last one.
    await sleep(random(5000) / 1000)
    killed = true
    program.child.kill('SIGKILL')
  }

  async function send(method: string, path: string, body?: string): Promise<void> {
    const response = await program.fetch(path, { method, ...(body === undefined ? {} : { body }) })
    const content = await response.text()
    if (!response.ok) throw new Error(`${method} ${path} was answered ${response.status}: ${content}`)
    if (--answersLeft === 0) void kill()
  }

  async function work(): Promise<void> {
    try {
      for (;;) {
        const [doomed] = random(10) < 4 ? deletable.splice(random(deletable.length), 1) : []
        if (doomed === undefined) {
          const plant = newPlant(ledger.size, random)
          ledger.set(plant.name, plant)
          await send('POST', '/plants', `{"id":${plant.id},"name":"${plant.name}","tag":"${plant.tag}"}`)
          plant.state = 'present'
          report.creates++
          deletable.push(plant)
        } else {
          doomed.state = 'unsure'
          await send('DELETE', `/plants/${doomed.id}`)
          doomed.state = 'absent'
          report.deletes++
        }
      }
    } catch (error) {
      if (!killed) throw error
    }
  }

  await Promise.all(Array.from({ length: CONNECTIONS }, work))
}

/** Ids all over int64, each once, and rows from a few bytes to several pages. */
function newPlant(serial: number, random: Random): SentPlant {
  const id = BigInt.asIntN(64, BigInt(serial) * 0x9e3779b97f4a7c15n)
  const length = random(50) === 0 ? 20_000 : random(500)
  return { id, name: `plant ${serial}`, tag: 'x'.repeat(length), state: 'unsure' }
}

async function listPlants(program: Program): Promise<Plant[]> {
  return (await (await program.fetch('/plants')).json()) as Plant[]
}
