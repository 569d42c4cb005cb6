import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { Client } from 'pg'
import { storeConformance } from '../../src/conformance/store-conformance.ts'
import type { NewPlant } from '../../src/plants/plant.ts'
import { postgresStore } from '../../src/stores/postgres/postgres-store.ts'
import { applyMigrations, MIGRATIONS } from '../../src/stores/postgres/send.ts'
import { openDatabase, skipWithoutPostgres } from '../support/postgres-database.ts'

const PAGE = { limit: 1000, maxBytes: 131_072 }
const plant = (id: bigint, name = 'Monstera'): NewPlant => ({ id, name })

test('postgresStore', async (t) => {
  const database = await openDatabase(t)
  const { config } = database
  const pool = database.openPool()
  const store = postgresStore(pool)
  await store.migrate()

  /** Changes the setting for new sessions, and ends the others. */
  async function setReadOnly(setting: string) {
    const client = new Client(config)
    await client.connect()
    await client.query(`BEGIN READ WRITE; ALTER DATABASE ${config.database} ${setting}; COMMIT`)
    await client.query(
      'SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()',
    )
    await client.end()
  }

  const tests: [string, () => Promise<void>][] = []
  storeConformance({
    test: (name, run) => tests.push([name, run]),
    async create() {
      await pool.query('TRUNCATE public.plant_store_plants')
      return store
    },
    ...(skipWithoutPostgres === false && {
      breakWrites: () => setReadOnly('SET default_transaction_read_only = on'),
      restore: () => setReadOnly('RESET default_transaction_read_only'),
    }),
  })
  for (const [name, run] of tests) await t.test(name, run)
})

describe('the table option', () => {
  for (const table of ['plants', 'a.b; DROP TABLE c', 'Public.plants', 'a.b.c', 'a."b', 'a."b"c"', '', 'a.']) {
    test(`rejects ${JSON.stringify(table)}`, () => {
      assert.throws(() => postgresStore({ query: () => assert.fail() }, { table }), {
        name: 'TypeError',
        message: /^options.table must be a schema and a table/,
      })
    })
  }

  test('accepts quoted names', async (t) => {
    const pool = (await openDatabase(t)).openPool()
    await pool.query('CREATE SCHEMA "my ""own"" schema"')
    const store = postgresStore(pool, { table: '"my ""own"" schema"."Plants; --"' })
    await store.migrate()
    await store.ping()
    assert.equal(await store.create('ada', plant(1n)), true)
    assert.equal(await store.create('ada', plant(1n)), false)
  })
})

describe('tables that the store cannot use', () => {
  const TABLE = 'plant_store_plants'
  const DROP_KEY = `ALTER TABLE ${TABLE} DROP CONSTRAINT plant_store_plants_pkey`
  const NEEDS_KEY = /^The table public.plant_store_plants needs the key PRIMARY KEY \(owner COLLATE "C", id\)\.$/
  const tables: [name: string, change: string, message: RegExp][] = [
    ['a missing table', `DROP TABLE ${TABLE}`, /relation "public.plant_store_plants" does not exist/],
    ['no key', DROP_KEY, NEEDS_KEY],
    ['a key on the id only', `${DROP_KEY}; ALTER TABLE ${TABLE} ADD PRIMARY KEY (id)`, NEEDS_KEY],
    ['a partial key', `${DROP_KEY}; CREATE UNIQUE INDEX ON ${TABLE} (owner, id) WHERE id > 0`, NEEDS_KEY],
    ['another collation', `ALTER TABLE ${TABLE} ALTER owner TYPE text COLLATE "POSIX"`, NEEDS_KEY],
    [
      'a missing column',
      `ALTER TABLE ${TABLE} DROP tag`,
      /column "tag" of relation "plant_store_plants" does not exist/,
    ],
    [
      'a name that is not text',
      `ALTER TABLE ${TABLE} ALTER name TYPE jsonb USING NULL`,
      /^column "name" is of type jsonb but expression is of type text$/,
    ],
    ['an id that is text', `ALTER TABLE ${TABLE} ALTER id TYPE text`, /operator does not exist: text = bigint/],
    [
      'a generated id',
      `ALTER TABLE ${TABLE} ALTER id ADD GENERATED ALWAYS AS IDENTITY`,
      /cannot insert a non-DEFAULT value into column "id"/,
    ],
    [
      'another unique index',
      `CREATE UNIQUE INDEX names ON ${TABLE} (name)`,
      /^The table public.plant_store_plants can't be used: drop its other unique index, names\.$/,
    ],
  ]
  for (const [name, change, message] of tables) {
    test(`ping reports ${name} in one line`, async (t) => {
      const pool = (await openDatabase(t)).openPool()
      const store = postgresStore(pool)
      await store.migrate()
      await pool.query(change)
      await assert.rejects(store.ping(), (error: Error) => {
        assert.match(error.message, message)
        assert.doesNotMatch(error.message, /\n/)
        return true
      })
      // Nothing is created twice, and a new id is never a conflict.
      await Promise.resolve(store.create('ada', plant(1n))).catch(() => undefined)
      const isNew = name === 'another unique index'
      const result = await Promise.resolve(store.create('ada', plant(isNew ? 2n : 1n))).catch(() => 'rejected')
      assert.notEqual(result, !isNew)
    })
  }

  test('a plant that the database rejects does not affect the others of its batch', async (t) => {
    const pool = (await openDatabase(t)).openPool()
    const store = postgresStore(pool)
    await store.migrate()
    await pool.query(`ALTER TABLE plant_store_plants ADD CHECK (name <> 'bad')`)
    const results = await Promise.allSettled(
      ['good', 'bad', 'fine', 'good', 'bad'].map(async (name, i) => store.create('ada', plant(BigInt(i), name))),
    )
    assert.deepEqual(
      results.map(({ status }) => status),
      ['fulfilled', 'rejected', 'fulfilled', 'fulfilled', 'rejected'],
    )
    const { plants } = await store.list('ada', PAGE)
    assert.deepEqual(
      plants.map(({ id }) => id),
      [0n, 2n, 3n],
    )
  })

  test('identical lists that arrive together share a statement, and no others do', async (t) => {
    const pool = (await openDatabase(t)).openPool()
    let sent = 0
    const query: typeof pool.query = (...args: unknown[]) => {
      sent++
      return (pool.query as (...args: unknown[]) => never)(...args)
    }
    const store = postgresStore({ query })
    await store.migrate()
    await Promise.all([store.create('ada', plant(1n)), store.create('ada', plant(2n)), store.create('bob', plant(3n))])
    const requests = ['ada', 'ada', 'bob', 'ada'].map((owner, i) => [owner, { ...PAGE, limit: i < 3 ? 9 : 1 }] as const)

    sent = 0
    const pages = await Promise.all(requests.map(async ([owner, request]) => store.list(owner, request)))

    assert.deepEqual(
      pages.map(({ plants, hasMore }) => [...plants.map(({ id }) => id), hasMore]),
      [
        [1n, 2n, false],
        [1n, 2n, false],
        [3n, false],
        [1n, true],
      ],
    )
    assert.equal(sent, 3)
  })

  test('ids are exact if the application parses int8 as a number', async (t) => {
    const pool = (await openDatabase(t)).openPool({
      types: { getTypeParser: (oid: number) => (oid === 20 ? Number : String) },
    })
    const store = postgresStore(pool)
    await store.migrate()
    assert.equal(await store.create('ada', plant(9_007_199_254_740_993n)), true)
    assert.equal(await store.delete('ada', 9_007_199_254_740_993n), true)
  })
})

describe('migrate', () => {
  test('creates the table with the collation C and the key', async (t) => {
    const pool = (await openDatabase(t)).openPool()
    await postgresStore(pool).migrate()
    const { rows } = await pool.query<{ definition: string }>(
      `SELECT attname || ' ' || format_type(atttypid, atttypmod) || coalesce(' ' || collname, '') AS definition
       FROM pg_attribute LEFT JOIN pg_collation AS c ON c.oid = attcollation
       WHERE attrelid = 'plant_store_plants'::regclass AND attnum IN (1, 2) ORDER BY attnum`,
    )
    assert.deepEqual(
      rows.map(({ definition }) => definition),
      ['owner text C', 'id bigint'],
    )
  })

  const TABLE = 'public.plant_store_plants'
  const LATER_MIGRATIONS: typeof MIGRATIONS = {
    ...MIGRATIONS,
    planted_at: (table) => `ALTER TABLE ${table} ADD COLUMN IF NOT EXISTS planted_at timestamptz`,
  }

  test('adds the column of a later version while an older process runs', async (t) => {
    const pool = (await openDatabase(t)).openPool()
    const older = postgresStore(pool)
    await older.migrate()
    await older.create('ada', plant(1n))
    await applyMigrations(pool, TABLE, LATER_MIGRATIONS)
    await pool.query('SELECT planted_at FROM plant_store_plants')
    await older.migrate()
    await older.ping()
    assert.equal(await older.create('ada', plant(2n)), true)
    assert.equal((await older.list('ada', PAGE)).plants.length, 2)
    assert.equal(await older.delete('ada', 1n), true)
  })

  test('can run in several processes at the same time', { skip: skipWithoutPostgres }, async (t) => {
    const pool = (await openDatabase(t)).openPool()
    await Promise.all(Array.from({ length: 8 }, () => applyMigrations(pool, TABLE, LATER_MIGRATIONS)))
    await postgresStore(pool).ping()
  })

  test('needs no privilege if there is nothing to do', { skip: skipWithoutPostgres }, async (t) => {
    const database = await openDatabase(t)
    const { config } = database
    const pool = database.openPool()
    await postgresStore(pool).migrate()
    const role = `role_${config.database}`
    await pool.query(`CREATE ROLE ${role} LOGIN PASSWORD 'x'`)
    t.after(async () => {
      const client = new Client({ ...config, database: 'postgres' })
      await client.connect()
      await client.query(`DROP ROLE ${role}`)
      await client.end()
    })
    const store = postgresStore(database.openPool({ user: role, password: 'x' }))
    await store.migrate()
    await assert.rejects(store.ping(), /permission denied for table plant_store_plants/)
    await pool.query(`GRANT SELECT, INSERT, DELETE ON plant_store_plants TO ${role}`)
    await store.ping()
    assert.equal(await store.create('ada', plant(1n)), true)
    await pool.query('DROP TABLE plant_store_plants')
    await assert.rejects(store.migrate(), /permission denied for schema public/)
    await pool.query(`DROP OWNED BY ${role}`)
  })
})
