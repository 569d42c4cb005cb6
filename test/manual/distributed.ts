// Repeatedly fails a server of a distributed table (set up as in docs/scaling.md) under load. Run it manually, on
// Debian:
//   apt-get install postgresql pgbouncer haproxy
//   npm run distributed -- --plants 20000 --failures 20 --kinds stop,freeze,kill
// First, it measures the creates and deletes per second of each setup in that document.
import { parseArgs } from 'node:util'
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import type { Store } from '../../src/plants/store.ts'
import { postgresStore, type PostgresStore } from '../../src/stores/postgres/postgres-store.ts'
import { spread, startDistributedTable, type DistributedTable } from '../support/database/servers/distributed-table.ts'
import { Workload } from '../support/database/histories/workload.ts'
import { Program } from '../support/program/program.ts'
import type { PostgresServer } from '../support/wire/debian-servers.ts'
import { runWithCleanup } from '../support/child-process.ts'

/** How to make a server fail, and how to recover it. */
type FailureKind = Readonly<Record<'fail' | 'recover', (server: PostgresServer) => unknown>>

const FAILURE_KINDS: Readonly<Record<string, FailureKind>> = {
  stop: { fail: (server) => server.stop('immediate'), recover: (server) => server.launch() },
  /** The processes hang, but the kernel still accepts packets. */
  freeze: { fail: (server) => server.signal('SIGSTOP'), recover: (server) => server.signal('SIGCONT') },
  kill: { fail: (server) => server.signal('SIGKILL'), recover: (server) => server.launch() },
}

/** How long a server is down, and how long throughput is measured before, in milliseconds. */
const OUTAGE_MS = 10_000
const BASELINE_MS = 3000

const { values } = parseArgs({
  options: {
    plants: { type: 'string', default: '20000' },
    failures: { type: 'string', default: '20' },
    kinds: { type: 'string', default: 'stop,freeze,kill' },
    clients: { type: 'string', default: '32' },
    pool: { type: 'string', default: '10' },
  },
})
const CLIENTS = Number(values.clients)

/** Creates and deletes plants of 100 owners concurrently, and prints the creates and deletes per second. */
async function measureThroughput(name: string, store: Store): Promise<void> {
  const total = Number(values.plants)
  async function runAll(operate: (owner: string, id: bigint) => unknown): Promise<number> {
    const start = performance.now()
    let next = 0
    await Promise.all(
      Array.from({ length: 256 }, async () => {
        for (let id = next++; id < total; id = next++) await operate(`owner ${id % 100}`, BigInt(id))
      }),
    )
    return Math.round((total * 1000) / (performance.now() - start))
  }
  const creates = await runAll((owner, id) => store.create(owner, { id, name: 'fern' }))
  const deletes = await runAll((owner, id) => store.delete(owner, id))
  console.log(`${name}: ${creates} creates and ${deletes} deletes a second`)
}

/** Measures the acknowledged writes per second. */
async function measureRate(workload: Workload, ms: number): Promise<number> {
  const { acknowledged } = workload
  await sleep(ms)
  return Math.round(((workload.acknowledged - acknowledged) * 1000) / ms)
}

/** Fails and recovers a server. `before` and `during` are the writes per second of the owner on the other server. */
async function runFailure(
  table: DistributedTable,
  program: Program,
  owners: readonly string[],
  failedNode: number,
  { fail, recover }: FailureKind,
): Promise<Readonly<Record<string, number>>> {
  await table.coordinator.query('TRUNCATE plant_store_plants')
  const failedWorkload = new Workload(owners[failedNode])
  const otherWorkload = new Workload(owners[1 - failedNode])
  const waitForLoad = (): Promise<unknown> =>
    Promise.all([failedWorkload, otherWorkload].map((workload) => workload.waitForProgress(CLIENTS)))
  for (const workload of [failedWorkload, otherWorkload]) workload.start(program, CLIENTS)
  await waitForLoad()
  const rateBefore = await measureRate(otherWorkload, BASELINE_MS)
  await fail(table.nodes[failedNode]!)
  const rateDuring = await measureRate(otherWorkload, OUTAGE_MS)
  await recover(table.nodes[failedNode]!)
  const recoveredAt = performance.now()
  await waitForLoad()
  const backAfterMs = Math.round(performance.now() - recoveredAt)
  for (const workload of [failedWorkload, otherWorkload]) await workload.stopAndVerify(program)
  return {
    before: rateBefore,
    during: rateDuring,
    backAfterMs,
    acknowledged: failedWorkload.acknowledged + otherWorkload.acknowledged,
    refused: failedWorkload.unavailable + otherWorkload.unavailable,
    unknown: failedWorkload.unknownOutcomes + otherWorkload.unknownOutcomes,
    otherOwnerFailures: otherWorkload.unavailable + otherWorkload.unknownOutcomes,
  }
}

await runWithCleanup(async (scope) => {
  const table = await startDistributedTable(scope)
  for (const node of table.nodes) scope.after(() => node.signal('SIGCONT'))
  const { owners } = table
  const servers = [table.coordinator, ...table.nodes]
  const pools = servers.map(({ url }) => new pg.Pool({ connectionString: url }))
  const [coordinatorStore, ...nodeStores] = pools.map((pool, index) =>
    postgresStore(pool, index === 0 ? { maxBatch: 1, maxInFlight: 10, timeoutMs: 60_000 } : {}),
  ) as [PostgresStore, ...PostgresStore[]]
  for (const store of nodeStores) await store.migrate()
  await measureThroughput('one server, unpartitioned table, batches of 128', nodeStores[0]!)
  await measureThroughput('two servers, one store per server', spread(nodeStores))
  await measureThroughput('two servers behind a coordinator, batches of 1', coordinatorStore)
  for (const pool of pools) await pool.end()

  const program = await Program.start({
    PLANT_STORE_URL: table.coordinator.url,
    PLANT_STORE_POSTGRES_BATCH: '1',
    PLANT_STORE_POSTGRES_POOL_SIZE: values.pool,
    PLANT_STORE_TOKENS: owners.map((owner) => `${owner}:${owner}`).join(),
    PLANT_STORE_KEEP_ALIVE_TIMEOUT_MS: '60000',
  })
  scope.after(() => program.stop())
  await program.waitUntilReady()

  const kinds = values.kinds.split(',')
  const reports: object[] = []
  for (let failure = 0; failure < Number(values.failures); failure++) {
    const kind = kinds[failure % kinds.length]!
    reports.push({ kind, ...(await runFailure(table, program, owners, failure % 2, FAILURE_KINDS[kind]!)) })
    console.log(reports.at(-1))
  }
  console.table(reports)
})
