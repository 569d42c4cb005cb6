// Makes a server of a distributed table fail again and again under load, as docs/scale.md makes the table. On Debian,
// by hand:
//   apt-get install postgresql pgbouncer haproxy
//   npm run distributed -- --plants 20000 --failures 20 --kinds stop,freeze,kill
// Before that it measures how many plants are created and deleted in a second, in as many ways as the document has.
import { parseArgs } from 'node:util'
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import type { Store } from '../../src/plants/store.ts'
import { postgresStore, type PostgresStore } from '../../src/stores/postgres/postgres-store.ts'
import { spread, startDistributedTable, type DistributedTable } from '../support/database/servers/distributed-table.ts'
import { Workload } from '../support/database/histories/workload.ts'
import { Program } from '../support/program/program.ts'
import type { PostgresServer } from '../support/wire/debian-servers.ts'
import { runByHand } from '../support/child.ts'

/** How a server is lost, and what brings it back. */
type Kind = Readonly<Record<'lose' | 'mend', (server: PostgresServer) => unknown>>

const KINDS: Readonly<Record<string, Kind>> = {
  stop: { lose: (server) => server.stop('immediate'), mend: (server) => server.begin() },
  /** Its processes stand still, and the kernel of their machine goes on taking packets. */
  freeze: { lose: (server) => server.signal('SIGSTOP'), mend: (server) => server.signal('SIGCONT') },
  kill: { lose: (server) => server.signal('SIGKILL'), mend: (server) => server.begin() },
}

/** How long a server is away, and how long the load is counted before, in milliseconds. */
const AWAY_MS = 10_000
const BEFORE_MS = 3000

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

/** Has many clients create plants of 100 owners, and delete them, and says how many they did in a second. */
async function measure(name: string, store: Store): Promise<void> {
  const total = Number(values.plants)
  async function each(operate: (owner: string, id: bigint) => unknown): Promise<number> {
    const start = performance.now()
    let next = 0
    await Promise.all(
      Array.from({ length: 256 }, async () => {
        for (let id = next++; id < total; id = next++) await operate(`owner ${id % 100}`, BigInt(id))
      }),
    )
    return Math.round((total * 1000) / (performance.now() - start))
  }
  const creates = await each((owner, id) => store.create(owner, { id, name: 'fern' }))
  const deletes = await each((owner, id) => store.delete(owner, id))
  console.log(`${name}: ${creates} creates and ${deletes} deletes a second`)
}

/** How much is acknowledged in a second. */
async function rate(workload: Workload, ms: number): Promise<number> {
  const { acknowledged } = workload
  await sleep(ms)
  return Math.round(((workload.acknowledged - acknowledged) * 1000) / ms)
}

/** Has a server fail. Rates are what was acknowledged in a second to the owner on the other server. */
async function fail(
  table: DistributedTable,
  program: Program,
  owners: readonly string[],
  victim: number,
  { lose, mend }: Kind,
): Promise<Readonly<Record<string, number>>> {
  await table.front.query('TRUNCATE plant_store_plants')
  const lost = new Workload(owners[victim])
  const other = new Workload(owners[1 - victim])
  const isLoaded = (): Promise<unknown> => Promise.all([lost, other].map((workload) => workload.progress(CLIENTS)))
  for (const workload of [lost, other]) workload.start(program, CLIENTS)
  await isLoaded()
  const before = await rate(other, BEFORE_MS)
  await lose(table.nodes[victim]!)
  const during = await rate(other, AWAY_MS)
  await mend(table.nodes[victim]!)
  const mended = performance.now()
  await isLoaded()
  const backAfterMs = Math.round(performance.now() - mended)
  for (const workload of [lost, other]) await workload.finish(program)
  return {
    before,
    during,
    backAfterMs,
    acknowledged: lost.acknowledged + other.acknowledged,
    refused: lost.refused + other.refused,
    unknown: lost.unknown + other.unknown,
    othersFailed: other.refused + other.unknown,
  }
}

await runByHand(async (scope) => {
  const table = await startDistributedTable(scope)
  for (const node of table.nodes) scope.after(() => node.signal('SIGCONT'))
  const { owners } = table
  const servers = [table.front, ...table.nodes]
  const pools = servers.map(({ url }) => new pg.Pool({ connectionString: url }))
  const [front, ...plain] = pools.map((pool, index) =>
    postgresStore(pool, index === 0 ? { maxBatch: 1, maxInFlight: 10, timeoutMs: 60_000 } : {}),
  ) as [PostgresStore, ...PostgresStore[]]
  for (const store of plain) await store.migrate()
  await measure('one server, a plain table, groups of 128', plain[0]!)
  await measure('two servers, a store for each', spread(plain))
  await measure('two servers behind a front, groups of 1', front)
  for (const pool of pools) await pool.end()

  const program = await Program.start({
    PLANT_STORE_URL: table.front.url,
    PLANT_STORE_POSTGRES_BATCH: '1',
    PLANT_STORE_POSTGRES_POOL_SIZE: values.pool,
    PLANT_STORE_TOKENS: owners.map((owner) => `${owner}:${owner}`).join(),
    PLANT_STORE_KEEP_ALIVE_TIMEOUT_MS: '60000',
  })
  scope.after(() => program.end())
  await program.ready()

  const kinds = values.kinds.split(',')
  const reports: object[] = []
  for (let failure = 0; failure < Number(values.failures); failure++) {
    const kind = kinds[failure % kinds.length]!
    reports.push({ kind, ...(await fail(table, program, owners, failure % 2, KINDS[kind]!)) })
    console.log(reports.at(-1))
  }
  console.table(reports)
})
