// A table whose partitions are on separate servers, set up as in docs/scaling.md.
import assert from 'node:assert/strict'
import { after, beforeEach, suite, test, type TestContext } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { Pool } from 'pg'
import { storeConformance } from '../../../../src/conformance/store-conformance.ts'
import { StoreUnavailableError } from '../../../../src/plants/store.ts'
import { memoryStore } from '../../../../src/stores/memory-store.ts'
import { postgresStore } from '../../../../src/stores/postgres/postgres-store.ts'
import {
  explain,
  explainStatements,
  spread,
  findSqlBlocks,
  startDistributedTable,
  startNode,
  replaceHosts,
} from '../../../support/database/servers/distributed-table.ts'
import { assertConsistentUnderContention, Workload } from '../../../support/database/histories/workload.ts'
import { EMPTY_PAGE } from '../../../support/database/plant-list.ts'
import type { CleanupScope } from '../../../support/child-process.ts'
import { readDocument } from '../../../support/package/documents.ts'
import { startProgram } from '../../../support/program/program.ts'
import { skipWithoutDebianServers } from '../../../support/wire/debian-servers.ts'

/** Returns rows while a partition is still being copied. The query appears in docs/scaling.md. */
const COPY_PROGRESS_QUERY = /`(SELECT FROM pg_subscription_rel .*?)`/.exec(readDocument('docs/scaling.md').text)![1]!

suite('a store that distributes owners over other stores', () => {
  storeConformance({ test, create: () => spread([memoryStore(), memoryStore(), memoryStore()]) })
})

suite('a table on two other servers', { skip: skipWithoutDebianServers }, async () => {
  if (skipWithoutDebianServers !== false) return
  const { coordinator: front, nodes, owners } = await startDistributedTable({ after })
  const pool = openPool({ after }, front.url)
  beforeEach(() => pool.query('TRUNCATE plant_store_plants'))

  // The same options as the program uses.
  for (const maxBatch of [1, 128]) {
    const options = { maxBatch, maxInFlight: maxBatch === 1 ? 10 : 1, timeoutMs: 60_000 }
    suite(`conforms with batches of up to ${maxBatch}`, () => {
      storeConformance({ test, create: () => postgresStore(pool, options) })
    })
  }

  function start(t: TestContext) {
    return startProgram(t, {
      PLANT_STORE_URL: front.url,
      PLANT_STORE_POSTGRES_BATCH: '1',
      // Long enough that calls don't time out on a busy machine.
      PLANT_STORE_STORE_TIMEOUT_MS: '60000',
      PLANT_STORE_TOKENS: owners.map((owner) => `${owner}:${owner}`).join(),
    })
  }

  test('sends each statement to a single server, which uses an index', async (t) => {
    await pool.query(`INSERT INTO plant_store_plants
      SELECT 'owner ' || n % 1000, n, 'fern' FROM generate_series(1, 200000) AS n`)
    await Promise.all(nodes.map((node) => node.query('ANALYZE')))
    for (const [index, owner] of owners.entries()) {
      const client = await front.connect(t)
      for (const plan of await explainStatements(client, owner)) {
        const remote = [...plan.matchAll(/Remote SQL: (.*)/g)].map(([, sql]) => sql!)
        assert.equal(remote.length, 1, plan)
        assert.doesNotMatch(plan, /Sort/)
        const inner = await explain(await nodes[index]!.connect(t), remote[0]!)
        assert.match(inner, /Index.* Scan/)
        assert.doesNotMatch(inner, /Seq Scan|Sort/)
      }
      const { rows } = await client.query('SELECT server_name AS name FROM postgres_fdw_get_connections()')
      assert.deepEqual(rows, [{ name: `plants_${index}` }])
    }
  })

  test('keeps concurrent processes consistent', async (t) => {
    const programs = await Promise.all([start(t), start(t)])
    await Promise.all(owners.map((owner) => assertConsistentUnderContention(t, programs, 16, owner)))
  })

  test('serves the owners on one server while the other server is stopped', async (t) => {
    const program = await start(t)
    const [lost, other] = owners.map((owner) => new Workload(owner)) as [Workload, Workload]
    for (const workload of [lost, other]) workload.start(program, 8)
    await Promise.all([lost.waitForProgress(50), other.waitForProgress(50)])
    await nodes[0]!.stop('immediate')
    await other.waitForProgress(100)
    await nodes[0]!.launch()
    await lost.waitForProgress(50)
    await lost.stopAndVerify(program)
    await other.stopAndVerify(program)
    assert.ok(lost.unavailable > 0)
    assert.deepEqual([other.unavailable, other.unknownOutcomes], [0, 0])
    await program.waitUntilReady()
    t.diagnostic(`${lost.unavailable} answered 50300, ${lost.unknownOutcomes} answered 50301`)
  })

  test('serves the owners on one server while the other server hangs, if each server has a separate store', async (t) => {
    const stores = nodes.map(({ url }) => postgresStore(openPool(t, url), { timeoutMs: 60_000 }))
    for (const store of stores) await store.migrate()
    const store = spread(stores)
    const places = spread(
      [true, false].map((isHeld) => ({ create: () => isHeld, list: () => EMPTY_PAGE, delete: () => isHeld })),
    )
    const names = Array.from({ length: 20 }, (_, n) => `owner ${n}`)
    const createAll = (isHeld: boolean) =>
      names
        .filter((name) => places.delete(name, 1n) === isHeld)
        .map(async (name) => store.create(name, { id: 1n, name }))

    nodes[0]!.signal('SIGSTOP')
    t.after(() => nodes[0]!.signal('SIGCONT'))
    const held = createAll(true)
    assert.deepEqual(new Set(await Promise.all(createAll(false))), new Set([true]))
    nodes[0]!.signal('SIGCONT')
    assert.deepEqual(new Set(await Promise.all(held)), new Set([true]))
  })

  test('reports an unknown outcome if a write is canceled during its commit on the other server', async () => {
    const [owner] = owners
    const store = postgresStore(pool, { maxBatch: 1, timeoutMs: 60_000 })
    // From now on, commits on this server wait for a standby that doesn't exist.
    await nodes[0]!.alterSystem('synchronous_standby_names', 'nobody')
    await nodes[0]!.waitForRows(`SELECT 1 WHERE current_setting('synchronous_standby_names') = 'nobody'`)
    const creating = assert.rejects(
      store.create(owner!, { id: 1n, name: 'moss' }),
      (error) => error instanceof StoreUnavailableError && error.isOutcomeUnknown,
    )
    await nodes[0]!.waitForRows(`SELECT 1 FROM pg_stat_activity WHERE wait_event = 'SyncRep'`)
    await front.query(`SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE query LIKE 'INSERT INTO plant%'`)
    await creating
    await nodes[0]!.alterSystem('synchronous_standby_names', '')
    await front.waitForRows('SELECT 1 FROM plant_store_plants')
  })

  test('loses no acknowledged write when a partition moves to a new server under load', async (t) => {
    const [PUBLISH = '', SUBSCRIBE = '', LOCK = '', CAUGHT_UP = '', CHANGE = ''] = findSqlBlocks('Adding a server')
    const added = await startNode(t)
    const options = `OPTIONS (host '127.0.0.1', port '${added.port}', dbname 'postgres')`
    await front.query(`CREATE SERVER plants_2 FOREIGN DATA WRAPPER postgres_fdw ${options};
      CREATE USER MAPPING FOR plants SERVER plants_2 OPTIONS (user 'plants')`)
    const program = await start(t)
    const workloads = owners.map((owner) => new Workload(owner))
    for (const workload of workloads) workload.start(program, 8)
    await Promise.all(workloads.map((workload) => workload.waitForProgress(50)))

    const [partition] = await front.query<{ name: string }>(
      `SELECT tableoid::regclass::text AS name FROM plant_store_plants WHERE owner = '${owners[1]}' LIMIT 1`,
    )
    const number = /\d+/.exec(partition!.name)![0]
    const local = (sql: string) =>
      replaceHosts(sql, [...nodes, added])
        .replaceAll('plants_1', `plants_${number}`)
        .replaceAll('REMAINDER 1', `REMAINDER ${number}`)
    await nodes[1]!.query(local(PUBLISH))
    await added.query(local(SUBSCRIBE))
    while ((await added.query(COPY_PROGRESS_QUERY)).length > 0) await sleep(50)
    const session = await front.connect(t)
    await session.query(LOCK)
    await nodes[1]!.waitForRows(`SELECT 1 FROM (${CAUGHT_UP.replace(';', '')}) AS state WHERE done`)
    await session.query(local(CHANGE))
    await added.query('DROP SUBSCRIPTION move_1')
    await nodes[1]!.query(`DROP TABLE plant_store_plants_${number}`)

    await Promise.all(workloads.map((workload) => workload.waitForProgress(50)))
    for (const workload of workloads) await workload.stopAndVerify(program)
    assert.equal((await added.query(`SELECT 1 FROM plant_store_plants_${number} LIMIT 1`)).length, 1)
  })
})

function openPool(t: CleanupScope, connectionString: string) {
  // The server may stop before the pool ends.
  const pool = new Pool({ connectionString, connectionTimeoutMillis: 10_000 }).on('error', () => undefined)
  t.after(() => pool.end())
  return pool
}
