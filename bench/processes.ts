import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { availableParallelism, loadavg } from 'node:os'
import { fileURLToPath } from 'node:url'
import { findFreePort } from '../test/support/wire/find-free-port.ts'
import { type Case, createPlantsCase, listPlantsCase, TOKEN } from './cases.ts'
import { type Database, POSTGRES, SQLITE } from './databases.ts'
import { Client } from './load.ts'
import { percentile } from './report/statistics.ts'

const PROGRAM_FILE = fileURLToPath(new URL('../dist/server.js', import.meta.url))

const STORES: readonly (readonly [scheme: string, Database])[] = [
  ['sqlite', SQLITE],
  ['postgres', POSTGRES],
]

/** With ids that no list begins with. */
const CREATE_CASE = createPlantsCase('create', (n) => 600_000_000 + n)
const CASES: readonly Case[] = [listPlantsCase(10), CREATE_CASE]
const PROCESS_COUNTS = [1, 2, 4]
const CONNECTIONS = 64
const WARM_UP_SECONDS = 2
const MEASURE_SECONDS = 3

/** Clock ticks of /proc, which are the same on all Linux. */
const CLOCK_TICK_US = 10_000

/** Measures 1, 2 and 4 programs that share a port and a database, and prints a table. */
export async function measureProcesses(): Promise<void> {
  console.log(`node ${process.version}, ${availableParallelism()} cores, which the client and Postgres use too`)
  const columns = ['store', 'programs', 'case', 'req/s', 'CPU µs/req', 'client µs/req', 'p50 ms', 'p99 ms', 'load']
  console.log(formatRow(columns))
  for (const [scheme, database] of STORES) {
    if (database.unavailableReason !== undefined) console.log(`${scheme} is skipped: ${database.unavailableReason}`)
    else for (const count of PROCESS_COUNTS) await measureStore(scheme, database, count)
  }
}

async function measureStore(scheme: string, database: Database, count: number): Promise<void> {
  const temporaryDatabase = await database.create(0)
  const { location } = temporaryDatabase
  const port = await findFreePort()
  const environment = {
    PORT: String(port),
    PLANT_STORE_REUSE_PORT: '1',
    PLANT_STORE_TOKENS: `bench:${TOKEN}`,
    PLANT_STORE_URL: scheme === 'sqlite' ? `sqlite:${location}` : location,
  }
  const programs: ChildProcess[] = []
  try {
    for (let i = 0; i < count; i++) programs.push(await startProgram(environment))
    for (const theCase of CASES)
      console.log(formatRow([scheme, count, ...(await measureCase(theCase, port, programs))]))
  } finally {
    for (const program of programs) await stopProgram(program)
    await temporaryDatabase.remove()
  }
}

async function startProgram(environment: Readonly<Record<string, string>>): Promise<ChildProcess> {
  const child = spawn(process.execPath, [PROGRAM_FILE], { env: environment, stdio: ['ignore', 'pipe', 'ignore'] })
  await Promise.race([
    once(child.stdout, 'data'),
    once(child, 'exit').then(() => Promise.reject(new Error('a program has ended'))),
  ])
  return child
}

async function stopProgram(program: ChildProcess): Promise<void> {
  const exited = once(program, 'exit')
  program.kill('SIGTERM')
  await exited
}

async function measureCase(
  { name, seedCount, seedRequest, request, expectedResponse }: Case,
  port: number,
  programs: readonly ChildProcess[],
): Promise<string[]> {
  const client = await Client.connect(port, CONNECTIONS)
  try {
    await client.send({ request: seedRequest, requests: Number(seedCount), expectedResponse: { status: 200 } })
    const warmUp = await client.send({ request, expectedResponse, seconds: WARM_UP_SECONDS })
    const before = programs.map(cpuOf)
    const clientBefore = process.cpuUsage()
    const nextRequest = (n: number): string => request(warmUp.responseCount + n)
    const { responseCount, seconds, latencies } = await client.send({
      request: nextRequest,
      expectedResponse,
      seconds: MEASURE_SECONDS,
    })
    const { user, system } = process.cpuUsage(clientBefore)
    const cpu = programs.reduce((sum, program, i) => sum + cpuOf(program) - before[i]!, 0)
    const latency = [50, 99].map((percent) => percentile(latencies, percent).toFixed(1))
    const perRequest = (us: number): string => (us / responseCount).toFixed(0)
    const rate = (responseCount / seconds).toFixed(0)
    return [name, rate, perRequest(cpu), perRequest(user + system), ...latency, loadavg()[0]!.toFixed(1)]
  } finally {
    client.close()
  }
}

/** Microseconds that a process has used, user and system. */
function cpuOf({ pid }: ChildProcess): number {
  // Behind the name, which may hold anything, the 12th and the 13th: proc_pid_stat(5).
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ').at(-1)!.split(' ')
  return (Number(fields[11]) + Number(fields[12])) * CLOCK_TICK_US
}

function formatRow(cells: readonly unknown[]): string {
  return cells.map((cell) => String(cell).padStart(13)).join(' ')
}
