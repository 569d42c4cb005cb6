import assert from 'node:assert/strict'
import { join } from 'node:path'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { Workload } from '../../support/database/histories/workload.ts'
import { skip } from '../../support/database/sqlite-file.ts'
import { temporaryDirectory } from '../../support/temporary-file.ts'
import { Program, TOKEN } from '../../support/program/program.ts'

const CYCLES = 20

test('loses nothing that it acknowledged when it is killed under load, again and again', { skip }, async (t) => {
  const url = `sqlite:${join(temporaryDirectory(t), 'plants.db')}`
  // From nothing to several pages of the file.
  const tagOf = (id: number): string => 'x'.repeat(id % 50 === 0 ? 20_000 : id % 500)
  const workload = new Workload(TOKEN, { pauseMs: 0, tagOf })
  for (let cycle = 0; cycle <= CYCLES; cycle++) {
    const program = await Program.start({ PLANT_STORE_URL: url })
    try {
      if (cycle === CYCLES) {
        await workload.finish(program)
      } else {
        workload.start(program, 16)
        await workload.progress(1 + Math.floor(200 * Math.random()))
        // Off the beat of the answers: at any point of the work on the groups after the last one.
        await sleep(5 * Math.random())
      }
    } finally {
      program.child.kill('SIGKILL')
      await program.ended
    }
  }
  t.diagnostic(`${workload.acknowledged} operations acknowledged, ${workload.unknown} without an answer`)
  assert.equal(workload.refused, 0)
})
