import assert from 'node:assert/strict'
import { after, beforeEach, test } from 'node:test'
import { types } from 'pg'
import type { NewPlant } from '../../../src/plants/plant.ts'
import { MAX_PAGE_BYTES, StoreUnavailableError } from '../../../src/plants/store.ts'
import { storeConformance } from '../../../src/conformance/store-conformance.ts'
import { postgresStore, schema, type Query, type Queryable } from '../../../src/stores/postgres/postgres-store.ts'
import { needsServer, openDatabase } from '../../support/database/postgres-server.ts'
import { exactPages } from '../../support/database/exact-pages.ts'

const MIN_ID = -(2n ** 63n)
const MAX_ID = 2n ** 63n - 1n

// Not in a hook: Node does not wait for one if a pattern of names leaves no test of this file to run.
const database = await openDatabase()
after(() => database.close())
const pool = database.openPool()
await postgresStore(pool).migrate()
beforeEach(() => pool.query('TRUNCATE plant_store_plants'))

storeConformance({ test, create: () => postgresStore(pool) })
exactPages(test, () => postgresStore(pool))

/** What the pool is asked, in order, for how many plants each, and how much of it was under way at once. */
function watch(): { queryable: Queryable; queries: Query[]; sizes: number[]; mostInFlight: () => number } {
  const queries: Query[] = []
  const sizes: number[] = []
  let inFlight = 0
  let most = 0
  return {
    queries,
    sizes,
    mostInFlight: () => most,
    queryable: {
      async query(query) {
        queries.push(query)
        const [owners] = query.values
        sizes.push(Array.isArray(owners) ? owners.length : 1)
        most = Math.max(most, ++inFlight)
        return pool.query(query).finally(() => inFlight--)
      },
    },
  }
}

function plant(id: number, name = `plant ${id}`): NewPlant {
  return { id: BigInt(id), name, tag: id % 2 === 0 ? 'even' : 'odd' }
}

function plants(count: number): NewPlant[] {
  return Array.from({ length: count }, (_, id) => plant(id))
}

async function plantsOf(owner: string): Promise<NewPlant[]> {
  const listed = await postgresStore(pool).list(owner, { limit: 1000, maxBytes: MAX_PAGE_BYTES })
  return listed.map(({ id, name, tag }) => ({ id, name, tag }))
}

test('makes its table where there is none, and leaves it as it is where there is one', async () => {
  await pool.query('DROP TABLE plant_store_plants')
  const store = postgresStore(pool)
  await store.migrate()
  await store.create('ann', plant(1))
  await store.migrate()
  assert.deepEqual(await plantsOf('ann'), [plant(1)])
})

test('makes its table from many connections at once', { skip: needsServer }, async () => {
  const rivals = Array.from({ length: 8 }, () => postgresStore(database.openPool({ max: 1 })))
  await Promise.all(rivals.map((store) => store.ping()))
  for (let round = 0; round < 5; round++) {
    await pool.query('DROP TABLE plant_store_plants')
    await Promise.all(rivals.map((store) => store.migrate()))
    assert.deepEqual(await plantsOf('ann'), [])
  }
})

test('is not ready without its table', async () => {
  const store = postgresStore(pool)
  await store.ping()
  await pool.query('DROP TABLE plant_store_plants')
  await assert.rejects(store.ping(), { code: '42P01' })
  await pool.query(schema)
})

test('says why its table cannot be made', async () => {
  await pool.query('DROP TABLE plant_store_plants')
  await pool.query('CREATE TYPE plant_store_plants AS ENUM ()')
  await assert.rejects(postgresStore(pool).migrate(), { code: '42710' })
  await pool.query('DROP TYPE plant_store_plants')
  await pool.query(schema)
})

test('keeps ids exactly, whatever the host has bigints parsed into', async (t) => {
  t.after(() => types.setTypeParser(types.builtins.INT8, String))
  types.setTypeParser(types.builtins.INT8, Number)
  const store = postgresStore(pool)
  const ids = [MIN_ID, -1n, 0n, 9_007_199_254_740_993n, MAX_ID]
  for (const id of ids) assert.equal(await store.create('ann', { id, name: 'fern' }), true)
  const listed = await store.list('ann', { limit: 10, maxBytes: MAX_PAGE_BYTES })
  assert.deepEqual(
    listed.map(({ id }) => id),
    ids,
  )
  assert.deepEqual(
    await Promise.all(ids.map((id) => store.delete('ann', id))),
    ids.map(() => true),
  )
})

test('lists nothing after the last id there is', async () => {
  const store = postgresStore(pool)
  await store.create('ann', { id: MAX_ID, name: 'fern' })
  assert.equal((await store.list('ann', { limit: 1, maxBytes: MAX_PAGE_BYTES, after: MAX_ID - 1n })).length, 1)
  assert.equal((await store.list('ann', { limit: 1, maxBytes: MAX_PAGE_BYTES, after: MAX_ID })).length, 0)
})

test('asks the pool at once where nothing is under way', async () => {
  const { queryable, queries } = watch()
  const created = postgresStore(queryable).create('ann', plant(1))
  assert.equal(queries.length, 1)
  assert.equal(await created, true)
})

// With one statement under way a plant goes alone, then 50, 50 and 4. With two, chance has a part in the sizes.
for (const { maxInFlight, statements } of [
  { maxInFlight: 1, statements: 4 },
  { maxInFlight: 2, statements: 6 },
]) {
  test(`creates and deletes together what arrives meanwhile, ${maxInFlight} at a time`, async () => {
    const owners = ['ann', 'bob', 'ann bob', '{"},\\\'NULL', '']
    const all = owners.flatMap((owner) => plants(21).map((kept) => ({ owner, kept })))
    const options = { maxInFlight, maxBatch: 50 }

    const creating = watch()
    const creator = postgresStore(creating.queryable, options)
    const created = await Promise.all(all.map(({ owner, kept }) => creator.create(owner, kept)))
    assert.deepEqual(
      created,
      all.map(() => true),
    )
    for (const owner of owners) assert.deepEqual(await plantsOf(owner), plants(21))

    const deleting = watch()
    const deleter = postgresStore(deleting.queryable, options)
    const deleted = await Promise.all(all.map(({ owner, kept }) => deleter.delete(owner, kept.id)))
    assert.deepEqual(
      deleted,
      all.map(() => true),
    )
    for (const owner of owners) assert.deepEqual(await plantsOf(owner), [])

    for (const { sizes, mostInFlight } of [creating, deleting]) {
      assert.ok(Math.max(...sizes) === 50 && sizes.length <= statements, `groups of ${sizes.join()}`)
      assert.equal(mostInFlight(), maxInFlight)
    }
  })
}

test('lets the first of several creates of an id win', async () => {
  const store = postgresStore(pool, { maxInFlight: 1 })
  const blocker = store.create('ann', plant(0))
  const names = ['first', 'second', 'third']
  const rivals = names.flatMap((name) => [plant(3, name), plant(2, name)]).map((kept) => store.create('ann', kept))
  assert.equal(await blocker, true)
  assert.deepEqual(await Promise.all(rivals), [true, true, false, false, false, false])
  assert.deepEqual(await plantsOf('ann'), [plant(0), plant(2, 'first'), plant(3, 'first')])
})

test('lets the first of several deletes of an id win', async () => {
  const store = postgresStore(pool, { maxInFlight: 1 })
  await store.create('ann', plant(1))
  await store.create('bob', plant(1))
  const blocker = store.delete('ann', 0n)
  const rivals = [store.delete('ann', 1n), store.delete('ann', 1n), store.delete('bob', 1n), store.delete('bob', 1n)]
  assert.equal(await blocker, false)
  assert.deepEqual(await Promise.all(rivals), [true, false, true, false])
})

test('has groups of several processes wait for each other, and never in a circle', { skip: needsServer }, async () => {
  const stores = Array.from({ length: 4 }, () => postgresStore(database.openPool(), { maxBatch: 400 }))
  for (let round = 0; round < 40; round++) {
    const calls = stores.flatMap((store, n) => {
      const ids = n % 2 === 0 ? plants(400) : plants(400).reverse()
      return ids.map((kept) => (round % 2 === 0 ? store.create('ann', kept) : store.delete('ann', kept.id)))
    })
    const outcomes = await Promise.all(calls)
    assert.equal(outcomes.filter(Boolean).length, 400)
  }
  await pool.query('SELECT pg_stat_force_next_flush()')
  const { rows } = await pool.query('SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()')
  assert.deepEqual(rows, [{ deadlocks: '0' }])
})

test('keeps the neighbours of a plant that the database refuses', async () => {
  const store = postgresStore(pool, { maxInFlight: 1 })
  const names = ['a', 'b', 'c\0', 'd', 'e\0', 'f', 'g']
  const blocker = store.create('ann', plant(100))
  const created = await Promise.allSettled(names.map((name, id) => store.create('ann', plant(id, name))))
  await blocker
  assert.deepEqual(
    created.map((outcome) =>
      outcome.status === 'fulfilled' ? outcome.value : (outcome.reason as { code: string }).code,
    ),
    [true, true, '22021', true, '22021', true, true],
  )
  assert.deepEqual(
    (await plantsOf('ann')).map(({ name }) => name),
    ['a', 'b', 'd', 'f', 'g', 'plant 100'],
  )
})

test('keeps the neighbours of a plant that breaks a rule of the host', async (t) => {
  await pool.query(`ALTER TABLE plant_store_plants ADD CONSTRAINT no_weeds CHECK (name <> 'weed')`)
  t.after(() => pool.query('ALTER TABLE plant_store_plants DROP CONSTRAINT no_weeds'))
  const store = postgresStore(pool, { maxInFlight: 1 })
  const blocker = store.create('ann', plant(100))
  const weed = assert.rejects(store.create('ann', plant(1, 'weed')), { code: '23514' })
  const fern = store.create('ann', plant(2, 'fern'))
  await Promise.all([blocker, weed])
  assert.equal(await fern, true)
})

test('fails a whole group where its statement fails for another reason than its values', async () => {
  await pool.query('DROP TABLE plant_store_plants')
  const { queryable, queries } = watch()
  const store = postgresStore(queryable, { maxInFlight: 1 })
  const created = await Promise.allSettled(plants(5).map((kept) => store.create('ann', kept)))
  await pool.query(schema)
  assert.deepEqual(
    created.map((outcome) => outcome.status === 'rejected' && (outcome.reason as { code: string }).code),
    Array(5).fill('42P01'),
  )
  assert.ok(
    created.every((outcome) => outcome.status === 'rejected' && !(outcome.reason instanceof StoreUnavailableError)),
  )
  assert.equal(queries.length, 3, 'a plant alone, then 3, then 1')
})

test('lists the same page for many with two statements, and another page with one of its own', async () => {
  const { queryable, queries } = watch()
  const store = postgresStore(queryable)
  for (const kept of [plant(1), plant(2)]) await store.create('ann', kept)
  const same = Array.from({ length: 20 }, () => store.list('ann', { limit: 10, maxBytes: MAX_PAGE_BYTES }))
  const others = [
    store.list('ann', { limit: 1, maxBytes: MAX_PAGE_BYTES }),
    store.list('ann', { limit: 10, maxBytes: MAX_PAGE_BYTES, after: 0n }),
    store.list('bob', { limit: 10, maxBytes: MAX_PAGE_BYTES }),
    store.list('ann', { limit: 10, maxBytes: 1 }),
  ]
  const lengths = (await Promise.all([...same, ...others])).map((page) => page.length)
  assert.deepEqual(lengths, [...same.map(() => 2), 1, 2, 0, 1])
  assert.equal(queries.length, 2 + 2 + 4)
})

test('has the server send little more than a page, and counts bytes only where plants are large', async () => {
  const asked: (string | undefined)[] = []
  let sent = 0
  const store = postgresStore({
    async query(query) {
      const result = await (pool as Queryable).query(query)
      asked.push(query.name)
      sent += result.rows.flat().join('').length
      return result
    },
  })
  const large = Array.from({ length: 20 }, (_, i) => plant(i, 'x'.repeat(50_000)))
  for (const kept of [...large, ...plants(50).slice(20)])
    await pool.query('INSERT INTO plant_store_plants VALUES ($1, $2, $3, $4)', ['ann', kept.id, kept.name, kept.tag])
  const pages: [number, number][] = []
  for (let after: bigint | undefined, length = 1; length > 0;) {
    const page = await store.list('ann', { limit: 20, maxBytes: 250_000, after })
    length = page.length
    after = page.at(-1)?.id
    pages.push([length, Math.round(sent / 1000)])
    sent = 0
  }
  assert.deepEqual(pages, [
    [5, 250],
    [5, 250],
    [5, 250],
    [5, 250],
    [20, 0],
    [10, 0],
    [0, 0],
  ])
  const [first, after] = ['plant-store list first', 'plant-store list after']
  const [largeFirst, largeAfter] = ['plant-store list large first', 'plant-store list large after']
  assert.deepEqual(asked, [first, largeFirst, largeAfter, largeAfter, largeAfter, largeAfter, after, after])
})

test('lists what was created before it was asked, also while an earlier list is under way', async () => {
  const store = postgresStore(pool)
  const before = store.list('ann', { limit: 10, maxBytes: MAX_PAGE_BYTES })
  await store.create('ann', plant(1))
  const after = store.list('ann', { limit: 10, maxBytes: MAX_PAGE_BYTES })
  assert.equal((await after).length, 1)
  await before
})

test('names its statements so that connections keep them prepared', async () => {
  const { queryable, queries } = watch()
  const store = postgresStore(queryable)
  await Promise.all(plants(4).map((kept) => store.create('ann', kept)))
  await store.list('ann', { limit: 1, maxBytes: MAX_PAGE_BYTES })
  await Promise.all(plants(4).map(({ id }) => store.delete('ann', id)))
  const texts = new Map(queries.map(({ name, text }) => [name, text]))
  assert.ok(queries.every(({ name }) => name?.startsWith('plant-store ') === true))
  assert.equal(texts.size, new Set(queries.map(({ text }) => text)).size)
})

test('names no statement where prepared statements are turned off', async () => {
  const { queryable, queries } = watch()
  const store = postgresStore(queryable, { preparedStatements: false })
  await Promise.all(plants(4).map((kept) => store.create('ann', kept)))
  assert.equal((await store.list('ann', { limit: 10, maxBytes: MAX_PAGE_BYTES })).length, 4)
  await Promise.all(plants(4).map(({ id }) => store.delete('ann', id)))
  assert.ok(queries.every(({ name }) => name === undefined))
})

test('deletes a group by the index, though its plan was made while the table was empty', async () => {
  const connection = needsServer === false ? database.openPool({ max: 1 }) : pool
  const store = postgresStore(connection, { maxInFlight: 1 })
  // A connection plans a prepared statement five times before it keeps a plan.
  for (let round = 0; round < 8; round++) await Promise.all(plants(50).map(({ id }) => store.delete('ann', id)))
  await connection.query(`INSERT INTO plant_store_plants SELECT 'ann', id, 'fern' FROM generate_series(1, 10000) AS id`)
  const { rows } = await connection.query<{ 'QUERY PLAN': string }>(
    `EXPLAIN EXECUTE "plant-store delete many" ('{ann}', '{1}')`,
  )
  const plan = rows.map((row) => row['QUERY PLAN']).join('\n')
  assert.match(plan, /Index.* on plant_store_plants/)
  assert.doesNotMatch(plan, /Seq Scan/)
})
