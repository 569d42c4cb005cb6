import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { Program, TOKEN } from '../../program/program.ts'
import { Workload } from './workload.ts'

const CLIENTS = 16

/** From nothing to several pages of the file. */
const tagOf = (id: number): string => 'x'.repeat(id % 50 === 0 ? 20_000 : id % 500)

/**
 * Kills the program with SIGKILL again and again, on one SQLite file and under load. Settles with the load once a last
 * program has shown that all its answers fit together.
 */
export async function runCrashCycles(cycles: number): Promise<Workload> {
  const directory = mkdtempSync(join(tmpdir(), 'plant-store-crash-'))
  const workload = new Workload(TOKEN, { pauseMs: 0, tagOf })
  try {
    for (let cycle = 0; cycle <= cycles; cycle++) {
      const program = await Program.start({ PLANT_STORE_URL: `sqlite:${join(directory, 'plants.db')}` })
      try {
        if (cycle === cycles) {
          await workload.finish(program)
        } else {
          workload.start(program, CLIENTS)
          await workload.progress(1 + Math.floor(200 * Math.random()))
          // Off the beat of the answers: at any point of the work on the groups after the last one.
          await sleep(5 * Math.random())
        }
      } finally {
        program.child.kill('SIGKILL')
        await program.ended
      }
    }
  } finally {
    rmSync(directory, { recursive: true })
  }
  return workload
}
