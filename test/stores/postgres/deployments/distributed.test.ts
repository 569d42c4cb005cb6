// A table that is partitioned by owner. In production, the partitions may be on separate servers.
import assert from 'node:assert/strict'
import { after, afterEach, suite, test } from 'node:test'
import { storeConformance } from '../../../../src/conformance/store-conformance.ts'
import { postgresStore } from '../../../../src/stores/postgres/postgres-store.ts'
import { explainStatements, findSqlBlocks } from '../../../support/database/servers/distributed-table.ts'
import { openDatabase } from '../../../support/database/postgres-database.ts'

// Not in a hook: Node doesn't wait for hooks if `--test-name-pattern` excludes every test of this file.
const pool = (await openDatabase({ after })).openPool()
// The columns of a table may be in any order.
await pool.query(
  'CREATE TABLE plant_store_plants (owner text COLLATE "C", id bigint, tag text, name text, PRIMARY KEY (owner, id))',
)
await pool.query(`INSERT INTO plant_store_plants VALUES ('ann', 1, 'red', 'fern'), ('bob', 1, 'green', 'moss')`)
const [PARTITIONS_SQL = ''] = findSqlBlocks('Partitions on one server')
const [MIGRATION_SQL = ''] = findSqlBlocks('Partitioning an existing table')
await pool.query(MIGRATION_SQL.replace('-- Create the new table here.', () => PARTITIONS_SQL))

test('the SQL in docs/scaling.md keeps all plants when it partitions a table', async () => {
  const { rows } = await pool.query('SELECT * FROM plant_store_plants ORDER BY owner')
  assert.deepEqual(rows, [
    { owner: 'ann', id: '1', name: 'fern', tag: 'red' },
    { owner: 'bob', id: '1', name: 'moss', tag: 'green' },
  ])
})

afterEach(() => pool.query('TRUNCATE plant_store_plants'))

for (const maxBatch of [1, 128]) {
  const create = async () => {
    const store = postgresStore(pool, { maxBatch, maxInFlight: 10, timeoutMs: 60_000 })
    await store.migrate()
    return store
  }
  suite(`a partitioned table with batches of up to ${maxBatch}`, () => storeConformance({ test, create }))
}

test('each statement uses the index of a single partition', async () => {
  await pool.query(`INSERT INTO plant_store_plants
    SELECT 'owner ' || n % 1000, n, 'fern' FROM generate_series(1, 100000) AS n; ANALYZE`)
  const client = await pool.connect()
  for (const plan of await explainStatements(client, 'owner 7')) {
    assert.equal(new Set(plan.match(/\bpublic\.plant_store_plants_\d+/g)).size, 1, plan)
    assert.match(plan, /Index.* Scan/)
    assert.doesNotMatch(plan, /Seq Scan/)
  }
  client.release()
})
