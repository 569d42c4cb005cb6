import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import process from 'node:process'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { Workload } from '../../support/database/histories/workload.ts'
import { skip } from '../../support/database/sqlite-file.ts'
import { temporaryDirectory } from '../../support/temporary-file.ts'
import { Program, TOKEN } from '../../support/program/program.ts'
import { withoutTrace } from '../../support/requirements.ts'

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

// SIGKILL leaves what was written to the page cache. That it reaches the disk shows in the system calls.
const skipTrace = skip || withoutTrace

test('syncs the file before every acknowledgement', { skip: skipTrace }, (t) => {
  const directory = temporaryDirectory(t)
  const trace = join(directory, 'trace')
  const program = `
    import { writeSync } from 'node:fs'
    import { sqliteStore } from './src/stores/sqlite/sqlite-store.ts'
    const store = sqliteStore(process.argv[1])
    for (let group = 0n; group < 10n; group++) {
      const ids = [0n, 1n, 2n, 3n].map((offset) => group * 4n + offset)
      await Promise.all(ids.map((id) => store.create('owner', { id, name: 'plant' })))
      if (group > 5n) await Promise.all(ids.map((id) => store.delete('owner', id)))
      writeSync(1, 'acknowledged')
    }`
  const strace = ['-f', '-o', trace, '-e', 'trace=fsync,fdatasync,write']
  const database = join(directory, 'plants.db')
  const node = [process.execPath, ...process.execArgv, '--input-type=module', '--eval', program, database]
  const { status, stderr } = spawnSync('strace', [...strace, ...node], { encoding: 'utf8' })
  assert.equal(status, 0, stderr)

  const calls = readFileSync(trace, 'utf8').matchAll(/f(?:data)?sync\(|"acknowledged"/g)
  const syncs = Array.from(calls, ([call]) => (call === '"acknowledged"' ? ' ' : 's')).join('')
  const runs = syncs.split(' ').slice(0, -1)
  const syncsBefore = runs.map(({ length }) => length)
  t.diagnostic(`syncs before each acknowledgement: ${syncsBefore.join(' ')}`)
  assert.equal(syncsBefore.length, 10)
  assert.ok(syncsBefore.every((count, group) => count >= (group > 5 ? 2 : 1)))
})
