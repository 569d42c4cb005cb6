import { execFile } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import process from 'node:process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { sqliteStore } from '../../../../src/stores/sqlite/sqlite-store.ts'
import { keptIds } from '../../wire/service.ts'

/** What a run asks of the file system that may fail. */
export const CALLS = ['fsync,fdatasync', 'pwrite64', 'ftruncate'] as const

/** What happens at the n-th call: it fails, or it and all later ones fail, or the process is killed. */
export const FAULTS = ['EIO', 'EIO+', 'ENOSPC', 'ENOSPC+', 'kill'] as const
export type Fault = (typeof FAULTS)[number]

/** What came of a run whose n-th call failed. */
export interface Outcome {
  /** Whether there was an n-th call. */
  readonly isHit: boolean
  /** How many creates and deletes were answered so. */
  readonly acknowledged: number
  readonly refused: number
  readonly unknown: number
  /** How many of the unknown the restart has found done. */
  readonly unknownDone: number
  /** What must not be. */
  readonly problems: readonly string[]
}

const RUN = fileURLToPath(new URL('fault-run.ts', import.meta.url))

function injection(calls: string, fault: Fault, n: number): string {
  if (fault === 'kill') return `inject=${calls}:signal=SIGKILL:when=${n}`
  return `inject=${calls}:error=${fault.replace('+', '')}:when=${n}${fault.endsWith('+') ? '+' : ''}`
}

/** Runs with a fault at the n-th of such calls, opens the file again and compares it with what was answered. */
export async function runWithFault(calls: string, fault: Fault, n: number): Promise<Outcome> {
  const directory = mkdtempSync(join(tmpdir(), 'plant-store-fault-'))
  try {
    const [path, trace] = [join(directory, 'plants.db'), join(directory, 'trace')]
    const strace = ['-f', '-o', trace, '-e', `trace=${calls}`, '-e', injection(calls, fault, n)]
    const env = { ...process.env, NODE_V8_COVERAGE: undefined }
    // The run ends by SIGKILL in any case.
    const lines = await promisify(execFile)('strace', [...strace, process.execPath, ...process.execArgv, RUN, path], {
      env,
    }).then(
      ({ stdout }) => stdout,
      (error: unknown) => (error as { stdout: string }).stdout,
    )
    const said = lines.split('\n').map((line) => line.split(' '))
    const isHit =
      fault === 'kill' ? !said.some(([word]) => word === 'done') : readFileSync(trace, 'utf8').includes('(INJECTED)')
    return { isHit, ...(await compare(said, path)) }
  } finally {
    rmSync(directory, { recursive: true })
  }
}

async function compare(said: readonly string[][], path: string): Promise<Omit<Outcome, 'isHit'>> {
  const problems = said.filter(([word]) => word === 'fault').map((words) => words.join(' '))
  const store = sqliteStore(path)
  const kept = new Set(await keptIds(store))
  await store.close()
  const { DatabaseSync } = process.getBuiltinModule('node:sqlite')
  const handle = new DatabaseSync(path)
  const [check] = Object.values(handle.prepare('PRAGMA integrity_check').get() as object) as [string]
  handle.close()
  if (check !== 'ok') problems.push(check)

  const counts = { acknowledged: 0, refused: 0, unknown: 0, unknownDone: 0 }
  /** What is known of each plant. */
  const plants = new Map<string, 'there' | 'gone' | 'unknown'>()
  for (const [word, kind, id, answer] of said) {
    if (word !== 'answer') continue
    const done = kind === 'create' ? 'there' : 'gone'
    if (answer === 'true') {
      counts.acknowledged++
      plants.set(id!, done)
    } else if (answer === 'unknown') {
      counts.unknown++
      if (kept.has(BigInt(id!)) === (done === 'there')) counts.unknownDone++
      plants.set(id!, 'unknown')
    } else if (answer === 'refused') {
      counts.refused++
      if (kind === 'create') plants.set(id!, 'gone')
    } else if (kind === 'create' || plants.get(id!) === 'there') {
      problems.push(`${kind} ${id} was answered ${answer}`)
    }
  }
  const answered = new Set(said.filter(([word]) => word === 'answer').map(([, kind, id]) => `${kind} ${id}`))
  for (const [word, kind, id] of said) if (word === 'call' && !answered.has(`${kind} ${id}`)) plants.set(id!, 'unknown')

  for (const [id, state] of plants) {
    if (state !== 'unknown' && kept.has(BigInt(id)) !== (state === 'there')) problems.push(`${id} must be ${state}`)
  }
  for (const id of kept) if (!plants.has(String(id))) problems.push(`${id} was never sent`)
  return { ...counts, problems }
}
