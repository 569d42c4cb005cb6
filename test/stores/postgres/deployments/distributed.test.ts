// A table in partitions by owner, which may be on servers of their own.
import assert from 'node:assert/strict'
import { after, beforeEach, suite, test } from 'node:test'
import { storeConformance } from '../../../../src/conformance/store-conformance.ts'
import { postgresStore, schema, type PostgresStore } from '../../../../src/stores/postgres/postgres-store.ts'
import * as statements from '../../../../src/stores/postgres/statements.ts'
import { failure } from '../../../support/database/failures.ts'
import { fillUp } from '../../../support/database/full-table.ts'
import { openDatabase } from '../../../support/database/postgres-server.ts'

const PARTITIONS = [0, 1, 2, 3]

// Not in a hook: Node does not wait for one if a pattern of names leaves no test of this file to run.
const database = await openDatabase()
after(() => database.close())
const pool = database.openPool()
await pool.query(`${schema} PARTITION BY HASH (owner)`)
for (const n of PARTITIONS) {
  await pool.query(
    `CREATE TABLE p${n} PARTITION OF plant_store_plants FOR VALUES WITH (MODULUS ${PARTITIONS.length}, REMAINDER ${n})`,
  )
}
beforeEach(() => pool.query('TRUNCATE plant_store_plants'))

async function openStore(maxBatch: number): Promise<PostgresStore> {
  const store = postgresStore(pool, { maxBatch, maxInFlight: 10 })
  await store.migrate()
  return store
}

for (const maxBatch of [1, 128]) {
  suite(`in groups of ${maxBatch} at most`, () => storeConformance({ test, create: () => openStore(maxBatch) }))
}

test('is asked for each owner in one partition, by its index', async () => {
  await pool.query(
    `INSERT INTO plant_store_plants SELECT 'owner ' || n % 1000, n, 'fern' FROM generate_series(1, 100000) AS n; ANALYZE`,
  )
  const client = await pool.connect()
  for (const [name, values] of [
    ['DELETE_ONE', `'owner 7', 7`],
    ['LIST_FIRST', `'owner 7', 10`],
    ['LIST_AFTER', `'owner 7', 10, 7`],
    ['LIST_LARGE_FIRST', `'owner 7', 10, 1000`],
    ['LIST_LARGE_AFTER', `'owner 7', 10, 1000, 7`],
  ] as const) {
    await client.query(`PREPARE trial AS ${statements[name].text}`)
    // After five plans for their values, a connection may keep one for all.
    let plan = ''
    for (let times = 0; times < 8; times++) {
      const { rows } = await client.query<{ 'QUERY PLAN': string }>(`EXPLAIN (VERBOSE) EXECUTE trial (${values})`)
      plan = rows.map((row) => row['QUERY PLAN']).join('\n')
    }
    await client.query('DEALLOCATE trial')
    assert.equal(new Set(plan.match(/\bpublic\.p\d\b/g)).size, 1, plan)
    assert.match(plan, /Index.* Scan/)
    assert.doesNotMatch(plan, /Seq Scan/)
  }
  client.release()
})

test('is ready again after a try, once a plant can be created', async () => {
  const store = await openStore(1)
  const makeRoom = await fillUp(pool)
  await failure(store.create('ann', { id: 1n, name: 'fern' }))
  await makeRoom()
  await store.ping()
  assert.deepEqual((await pool.query('SELECT owner FROM plant_store_plants')).rows, [])
})
