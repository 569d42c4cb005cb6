// A run whose n-th call of the file system fails, or kills the process; then the file is opened again, and compared
// with what was answered.
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import process from 'node:process'
import { suite, test, type TestContext } from 'node:test'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { sqliteStore } from '../../../src/stores/sqlite/sqlite-store.ts'
import { open, skip } from '../../support/database/sqlite-file.ts'
import { withoutTrace } from '../../support/requirements.ts'
import { temporaryDirectory } from '../../support/temporary-file.ts'
import { keptIds } from '../../support/wire/service.ts'

const RUN = fileURLToPath(new URL('../../support/database/fault-run.ts', import.meta.url))

interface Run {
  readonly path: string
  /** Whether there was an n-th call. */
  readonly isHit: boolean
  /** The lines of the run, in words. */
  readonly said: readonly string[][]
}

/** Runs with a fault at the n-th of such calls. With a plus, all calls fail from then on. */
async function runWithFault(t: TestContext, calls: string, fault: string, n: number): Promise<Run> {
  const directory = temporaryDirectory(t)
  const [path, trace] = [join(directory, 'plants.db'), join(directory, 'trace')]
  const effect = fault === 'kill' ? 'signal=SIGKILL' : `error=${fault.replace('+', '')}`
  const inject = `inject=${calls}:${effect}:when=${n}${fault.endsWith('+') ? '+' : ''}`
  const strace = ['-f', '-o', trace, '-e', `trace=${calls}`, '-e', inject]
  // The run ends by SIGKILL in any case.
  const { stdout } = await promisify(execFile)(
    'strace',
    [...strace, process.execPath, ...process.execArgv, RUN, path],
    {
      env: { ...process.env, NODE_V8_COVERAGE: undefined },
    },
  ).catch((error: unknown) => error as { stdout: string })
  const said = stdout.split('\n').map((line) => line.split(' '))
  const isHit =
    fault === 'kill' ? !said.some(([word]) => word === 'done') : readFileSync(trace, 'utf8').includes('(INJECTED)')
  return { path, isHit, said }
}

interface Outcome extends Readonly<Record<'true' | 'refused' | 'unknown', number>> {
  /** What must not be. */
  readonly problems: readonly string[]
}

/** Says how often each answer was given, and what is wrong. */
async function compare(t: TestContext, { said, path }: Run): Promise<Outcome> {
  const problems = said.filter(([word]) => word === 'fault').map((words) => words.join(' '))
  const store = sqliteStore(path)
  const kept = new Set(await keptIds(store))
  await store.close()
  const [check] = Object.values(open(t, path).prepare('PRAGMA integrity_check').all()[0] as object) as [string]
  if (check !== 'ok') problems.push(check)

  const counts = { true: 0, false: 0, refused: 0, unknown: 0 }
  const answers = new Map<string, string>()
  for (const [word, kind, id, answer] of said) {
    if (word === 'call') answers.set(`${kind} ${id}`, 'none')
    if (word !== 'answer') continue
    counts[answer as keyof typeof counts]++
    answers.set(`${kind} ${id}`, answer!)
  }
  const sent = [...answers.keys()].filter((call) => call.startsWith('create ')).map((call) => call.split(' ')[1]!)
  for (const id of sent) {
    const [created, deleted] = ['create', 'delete'].map((kind) => answers.get(`${kind} ${id}`))
    if (created === 'false' || (created === 'true' && deleted === 'false')) problems.push(`${id} was answered false`)
    const isUnknown = [created, deleted].some((answer) => answer === 'none' || answer === 'unknown')
    if (isUnknown && deleted !== 'true') continue
    const isThere = created === 'true' && deleted !== 'true'
    if (kept.has(BigInt(id)) !== isThere) problems.push(`${id} must ${isThere ? '' : 'not '}be there`)
  }
  for (const id of kept) if (!sent.includes(String(id))) problems.push(`${id} was never sent`)
  return { ...counts, problems }
}

suite('answers are true after a restart', { skip: skip || withoutTrace }, () => {
  for (const [calls, fault, ns, leaves] of [
    ['fsync,fdatasync', 'EIO', [9, 14, 21], 'true'],
    ['fsync,fdatasync', 'EIO+', [14], 'unknown'],
    ['pwrite64', 'EIO', [60, 114], 'true'],
    ['pwrite64', 'EIO+', [60], 'unknown'],
    ['pwrite64', 'ENOSPC', [60, 114], 'true'],
    ['pwrite64', 'ENOSPC+', [60], 'refused'],
    ['pwrite64', 'kill', [60, 114], 'true'],
  ] as const) {
    for (const n of ns) {
      test(`with ${fault} at call ${n} of ${calls}`, async (t) => {
        const run = await runWithFault(t, calls, fault, n)
        const { problems, [leaves]: count } = await compare(t, run)
        assert.deepEqual([problems, run.isHit], [[], true])
        assert.ok(count > 0)
      })
    }
  }
})
