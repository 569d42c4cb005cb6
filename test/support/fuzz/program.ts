import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'
import fc from 'fast-check'
import { fill } from '../database/fill.ts'
import { Program } from '../program/program.ts'
import { RawConnection } from '../wire/raw-connection.ts'
import { residentOf } from '../program/resident.ts'
import { OWNER } from './requests.ts'
import { trials, type Trial } from './trial.ts'

/** What became of the memory of the program. */
export interface MemoryReport {
  readonly sequences: number
  readonly requests: number
  /** The bytes of the program that are in memory: at the end of each minute, and a while after the last request. */
  readonly resident: readonly number[]
}

const CONCURRENCY = 32
const MAX_GROWTH = 100 * 2 ** 20
/** At most so long a client waits for what it has asked for, until it goes. */
const STAY_MS = 50

/**
 * Sends sequences of requests, sound and mutated ones, to the program as a process of its own, and watches its memory.
 * What it answers is not looked at.
 * @throws Error if the program takes 100 MiB more than after the first minute, or ends
 */
export async function fuzzProgram(seconds: number, seed: number): Promise<MemoryReport> {
  const [own, many] = [`fuzz-${OWNER}`, `many-${OWNER}`]
  const program = await Program.start({ PLANT_STORE_TOKENS: `ada:${own},bob:${many}` })
  await fill(program.port, many, 2500, (n) => ({ name: `plant ${n}` }))
  const resident: number[] = []
  const endsAt = performance.now() + seconds * 1000
  let [sequences, requests, batches] = [0, 0, 0]

  async function visit(trial: Trial): Promise<void> {
    sequences++
    requests += trial.requests.length
    const client = await RawConnection.open(program.port)
    const bytes = Buffer.concat(trial.requests)
    let sent = 0
    for (const { at } of trial.cuts) {
      client.send(bytes.subarray(sent, at))
      sent = at
      await sleep(0)
    }
    client.send(bytes.subarray(sent))
    // Some clients stay until the program closes the connection, or nearly; some leave at once.
    await Promise.race([client.closed, sleep(trial.pace % 2 === 0 ? 0 : trial.pace % STAY_MS)])
    client.socket.destroy()
  }

  const minutes = setInterval(() => resident.push(residentOf(program.child)), 60_000)
  try {
    await Promise.all(
      Array.from({ length: CONCURRENCY }, async () => {
        while (performance.now() < endsAt) {
          for (const trial of fc.sample(trials, { seed: Math.imul(seed, 0x9e3779b1) + batches++, numRuns: 20 })) {
            await visit(trial)
          }
        }
      }),
    )
    assert.equal((await fetch(`${program.url}/readyz`)).status, 200)
    await sleep(10_000)
    resident.push(residentOf(program.child))
    const growth = resident.at(-1)! - resident[0]!
    assert.ok(growth < MAX_GROWTH, `the program takes ${growth} bytes more than after a minute: ${resident.join(', ')}`)
    return { sequences, requests, resident }
  } finally {
    clearInterval(minutes)
    await program.end()
  }
}
