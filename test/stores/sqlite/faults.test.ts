// Each test makes the n-th system call of a writer process fail, or kills the process at that call. Then the test opens
// the file again, and compares its plants with the results that the writer reported.
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import process from 'node:process'
import { suite, test, type TestContext } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { sqliteStore } from '../../../src/stores/sqlite/sqlite-store.ts'
import { assertLinearizable, type Operation } from '../../support/database/histories/linearizability.ts'
import { Workload } from '../../support/database/histories/workload.ts'
import { createDatabasePath, openSqlite, skipWithoutSqlite } from '../../support/database/sqlite-file.ts'
import { Program, TOKEN } from '../../support/program/program.ts'
import { skipWithoutStrace } from '../../support/skip-reasons.ts'
import { createTempDirectory } from '../../support/temp-files.ts'
import { listStoredIds } from '../../support/wire/service.ts'

const CRASHING_WRITER = fileURLToPath(new URL('../../support/database/crashing-writer.ts', import.meta.url))

/**
 * Runs the writer under strace. Returns the trace of its system calls, and its output lines, split into words.
 * @param fault the error of the n-th of these calls. With a plus, all later calls fail too
 */
async function runTracedWriter(t: TestContext, calls: string, fault?: string, n?: number) {
  const directory = createTempDirectory(t)
  const [path, trace] = [join(directory, 'plants.db'), join(directory, 'trace')]
  const strace = ['-f', '-o', trace, '-e', `trace=${calls}`]
  if (fault !== undefined) {
    const effect = fault === 'kill' ? 'signal=SIGKILL' : `error=${fault.replace('+', '')}`
    strace.push('-e', `inject=${calls}:${effect}:when=${n}${fault.endsWith('+') ? '+' : ''}`)
  }
  const args = [...strace, process.execPath, ...process.execArgv, CRASHING_WRITER, path]
  const env = { ...process.env, NODE_V8_COVERAGE: undefined }
  // The writer always ends with SIGKILL, so `execFile` rejects.
  const { stdout } = await promisify(execFile)('strace', args, { env }).catch(
    (error: unknown) => error as { stdout: string },
  )
  return { path, trace: readFileSync(trace, 'utf8'), lines: stdout.split('\n').map((line) => line.split(' ')) }
}

/** Checks that the reported results match the plants in the file. */
async function assertReportedOutcomes(t: TestContext, { lines, path }: Awaited<ReturnType<typeof runTracedWriter>>) {
  assert.ok(!lines.some(([word]) => word === 'fault'), lines.join('\n'))
  const store = sqliteStore(path)
  const kept = await listStoredIds(store)
  await store.close()
  assert.deepEqual(Object.values(openSqlite(t, path).prepare('PRAGMA integrity_check').all()[0] as object), ['ok'])

  const operations = new Map<string, Operation>()
  for (const [at, [word, kind, id, answer]] of lines.entries()) {
    if (word !== 'call' && word !== 'answer') continue
    const key = `${kind} ${id}`
    const start = operations.get(key)?.start ?? at
    const succeeded = answer === undefined || answer === 'unknown' ? undefined : answer === 'true'
    if (answer === 'refused') operations.delete(key)
    else operations.set(key, { kind: kind as 'create', id: Number(id), name: id!, start, end: at, succeeded })
  }
  const plants = kept.map((id) => ({ id: Number(id), name: String(id) }))
  assertLinearizable([...operations.values()], [{ start: lines.length, end: lines.length + 1, plants }])
}

suite('the file matches the reported results after a restart', { skip: skipWithoutSqlite || skipWithoutStrace }, () => {
  for (const [calls, fault, ns, leaves] of [
    ['fsync,fdatasync', 'EIO', [9, 14, 21], 'true'],
    ['fsync,fdatasync', 'EIO+', [14], 'unknown'],
    ['pwrite64', 'EIO', [60, 114], 'true'],
    ['pwrite64', 'EIO+', [60], 'unknown'],
    // A disk quota, a file system that has become read-only, and a file size limit.
    ['pwrite64', 'EDQUOT+', [60], 'unknown'],
    ['pwrite64', 'EROFS+', [60], 'unknown'],
    ['pwrite64', 'EFBIG+', [60], 'unknown'],
    ['pwrite64', 'ENOSPC', [60, 114], 'true'],
    ['pwrite64', 'ENOSPC+', [60], 'refused'],
    ['pwrite64', 'kill', [60, 114], 'true'],
  ] as const) {
    for (const n of ns) {
      test(`with ${fault} at call ${n} of ${calls}`, async (t) => {
        const run = await runTracedWriter(t, calls, fault, n)
        await assertReportedOutcomes(t, run)
        if (fault === 'kill') assert.ok(!run.lines.some(([word]) => word === 'done'))
        else assert.match(run.trace, /\(INJECTED\)/)
        assert.ok(run.lines.some(([, , , answer]) => answer === leaves))
      })
    }
  }
})

// SIGKILL doesn't lose data in the page cache. Only the order of the system calls shows that writes reach the disk.
test(
  'the store syncs the file before acknowledging a write',
  { skip: skipWithoutSqlite || skipWithoutStrace },
  async (t) => {
    const { trace, lines: said } = await runTracedWriter(t, 'fsync,fdatasync,write')
    assert.ok(said.some(([word]) => word === 'done'))
    const order = Array.from(trace.matchAll(/sync\(|"call|"answer/g), ([event]) => event.at(1)).join('')
    // In each batch, the syncs (y) are between the calls (c) and their results (a).
    assert.match(order, /^y*(?:c+y+a+y*){12}$/)
  },
)

const CYCLES = 20

test(
  'no acknowledged write is lost when the standalone server is killed repeatedly under load',
  { skip: skipWithoutSqlite },
  async (t) => {
    const url = `sqlite:${createDatabasePath(t)}`
    // Tags from zero bytes to several pages of the file.
    const tagOf = (id: number) => 'x'.repeat(id % 50 === 0 ? 20_000 : id % 500)
    const workload = new Workload(TOKEN, { pauseMs: 0, getTag: tagOf })
    for (let cycle = 0; cycle <= CYCLES; cycle++) {
      const program = await Program.start({ PLANT_STORE_URL: url })
      try {
        if (cycle === CYCLES) {
          await workload.stopAndVerify(program)
        } else {
          workload.start(program, 16)
          await workload.waitForProgress(1 + Math.floor(200 * Math.random()))
          // Kill the process at a random point of its work, not always right after a response.
          await sleep(5 * Math.random())
        }
      } finally {
        program.child.kill('SIGKILL')
        await program.exited
      }
    }
    t.diagnostic(`${workload.acknowledged} operations acknowledged, ${workload.unknownOutcomes} without an answer`)
    assert.equal(workload.unavailable, 0)
  },
)
