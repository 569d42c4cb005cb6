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

const SERVER_FILE = fileURLToPath(new URL('../dist/server.js', import.meta.url))

const STORES: readonly (readonly [scheme: string, Database])[] = [
  ['sqlite', SQLITE],
  ['postgres', POSTGRES],
]

/** Each new plant's id is greater than the ids of the listed plants. */
const CREATE_CASE = createPlantsCase('create', (n) => 600_000_000 + n)
const CASES: readonly Case[] = [listPlantsCase(10), CREATE_CASE]
const PROCESS_COUNTS = [1, 2, 4]
const CONNECTIONS = 64
const WARM_UP_SECONDS = 2
const MEASURE_SECONDS = 3

/** The unit of CPU times in /proc, which is the same on every Linux system. */
const CLOCK_TICK_US = 10_000

/** Measures 1, 2 and 4 server processes that share a port and a database, and prints a table. */
export async function measureProcesses(): Promise<void> {
  console.log(`node ${process.version}, ${availableParallelism()} cores, shared with the client and Postgres`)
  const columns = ['store', 'processes', 'case', 'req/s', 'CPU µs/req', 'client µs/req', 'p50 ms', 'p99 ms', 'load']
  console.log(formatRow(columns))
  for (const [scheme, database] of STORES) {
    if (database.unavailableReason !== undefined) console.log(`skipping ${scheme}: ${database.unavailableReason}`)
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
  const servers: ChildProcess[] = []
  try {
    for (let i = 0; i < count; i++) servers.push(await startServer(environment))
    for (const theCase of CASES) console.log(formatRow([scheme, count, ...(await measureCase(theCase, port, servers))]))
  } finally {
    for (const server of servers) await stopServer(server)
    await temporaryDatabase.remove()
  }
}

async function startServer(environment: Readonly<Record<string, string>>): Promise<ChildProcess> {
  const child = spawn(process.execPath, [SERVER_FILE], { env: environment, stdio: ['ignore', 'pipe', 'ignore'] })
  await Promise.race([
    once(child.stdout, 'data'),
    once(child, 'exit').then(() => Promise.reject(new Error('A server process exited before it was ready.'))),
  ])
  return child
}

async function stopServer(server: ChildProcess): Promise<void> {
  const exited = once(server, 'exit')
  server.kill('SIGTERM')
  await exited
}

async function measureCase(
  { name, seedCount, seedRequest, request, expectedResponse }: Case,
  port: number,
  servers: readonly ChildProcess[],
): Promise<string[]> {
  const client = await Client.connect(port, CONNECTIONS)
  try {
    await client.send({ request: seedRequest, requests: Number(seedCount), expectedResponse: { status: 200 } })
    const warmUp = await client.send({ request, expectedResponse, seconds: WARM_UP_SECONDS })
    const before = servers.map(cpuOf)
    const clientBefore = process.cpuUsage()
    const nextRequest = (n: number): string => request(warmUp.responseCount + n)
    const { responseCount, seconds, latencies } = await client.send({
      request: nextRequest,
      expectedResponse,
      seconds: MEASURE_SECONDS,
    })
    const { user, system } = process.cpuUsage(clientBefore)
    const cpu = servers.reduce((sum, server, i) => sum + cpuOf(server) - before[i]!, 0)
    const latency = [50, 99].map((percent) => percentile(latencies, percent).toFixed(1))
    const perRequest = (us: number): string => (us / responseCount).toFixed(0)
    const rate = (responseCount / seconds).toFixed(0)
    return [name, rate, perRequest(cpu), perRequest(user + system), ...latency, loadavg()[0]!.toFixed(1)]
  } finally {
    client.close()
  }
}

/** Returns the user and system CPU time of a process, in microseconds. */
function cpuOf({ pid }: ChildProcess): number {
  // utime and stime are the 12th and 13th fields after the process name, which is in parentheses and may contain spaces
  // (see proc_pid_stat(5)).
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ').at(-1)!.split(' ')
  return (Number(fields[11]) + Number(fields[12])) * CLOCK_TICK_US
}

function formatRow(cells: readonly unknown[]): string {
  return cells.map((cell) => String(cell).padStart(13)).join(' ')
}
