// Statements have the same effect with any session settings, whether a role or another client of a pooler has set them.
import assert from 'node:assert/strict'
import { after, suite, test, type TestContext } from 'node:test'
import { defaults, type Pool, type PoolConfig } from 'pg'
import { MAX_PAGE_BYTES } from '../../../src/plants/store.ts'
import { postgresStore, type PostgresStore } from '../../../src/stores/postgres/postgres-store.ts'
import { captureUnavailable } from '../../support/database/errors.ts'
import { skipWithoutPostgres, openDatabase } from '../../support/database/postgres-database.ts'

const database = await openDatabase({ after })

/** Opens a pool with one connection, so that every statement runs in the session that a test changes. */
async function openPool(t: TestContext, config: PoolConfig = {}) {
  const pool = database.openPool({ max: 1, ...config })
  // Without a PostgreSQL server, all pools share one session.
  await pool.query('DISCARD ALL')
  await pool.query(`DO $$ DECLARE name text; BEGIN
    FOR name IN SELECT nspname FROM pg_namespace WHERE nspname !~ '^(pg_|information_schema)' LOOP
      EXECUTE format('DROP SCHEMA %I CASCADE', name);
    END LOOP;
  END $$; CREATE SCHEMA public`)
  t.after(() => pool.end())
  return pool
}

const COLUMNS = '(owner text, id bigint, name text, tag text, PRIMARY KEY (owner, id))'

const plants = [1n, 2n, 3n].map((id) => ({ id, name: `plant ${id}`, tag: 'green' }))

async function listPlants(store: PostgresStore, owner = 'ann') {
  const { plants } = await store.list(owner, { limit: 10, maxBytes: MAX_PAGE_BYTES })
  return plants.map(({ id, name, tag }) => (tag === undefined ? { id, name } : { id, name, tag }))
}

/** Creates, lists and deletes plants, one at a time and in batches, and pings the store. */
async function exerciseStore(store: PostgresStore) {
  assert.deepEqual(await Promise.all(plants.map((plant) => store.create('ann', plant))), [true, true, true])
  assert.deepEqual(await listPlants(store), plants)
  assert.deepEqual(await Promise.all(plants.map(({ id }) => store.delete('ann', id))), [true, true, true])
  assert.equal(await store.create('ann', plants[0]!), true)
  assert.equal(await store.create('ann', plants[0]!), false)
  await store.create('ann', { id: 9n, name: 'x'.repeat(5000) })
  assert.deepEqual(
    (await listPlants(store)).map(({ id }) => id),
    [1n, 9n],
  )
  assert.equal(await store.delete('ann', 9n), true)
  await store.ping()
}

async function countRows(pool: Pool, table: string) {
  const { rows } = await pool.query<{ count: number }>(`SELECT pg_catalog.count(*)::int AS count FROM ${table}`)
  return rows[0]!.count
}

suite('the store keeps using the same table', () => {
  const other = `CREATE SCHEMA other; CREATE TABLE other.plant_store_plants ${COLUMNS}`
  for (const [name, sql, decoy] of [
    ['has another search_path', `${other}; SET search_path TO other`, 'other.plant_store_plants'],
    [
      'was used by pg_dump, which empties the search_path',
      `SELECT pg_catalog.set_config('search_path', '', false)`,
      undefined,
    ],
    ['has a search_path without the schema of the table', 'SET search_path TO nowhere', undefined],
    [
      'has a temporary table with the same name',
      `CREATE TEMP TABLE plant_store_plants ${COLUMNS}`,
      'pg_temp.plant_store_plants',
    ],
    [
      'has a temporary view with the same name',
      `CREATE TEMP VIEW plant_store_plants AS SELECT ''::text AS owner, 1::bigint AS id, ''::text AS name, ''::text AS tag`,
      undefined,
    ],
  ] as const) {
    test(`even if its session ${name}`, async (t) => {
      const pool = await openPool(t)
      const store = postgresStore(pool)
      await store.migrate()
      await pool.query(sql)
      await exerciseStore(store)
      await store.migrate()
      assert.equal(await countRows(pool, 'public.plant_store_plants'), 1)
      if (decoy !== undefined) assert.equal(await countRows(pool, decoy), 0)
    })
  }

  test('the store keeps using the same table in a new session with another search_path', async (t) => {
    const pool = await openPool(t)
    await pool.query(`${other}; CREATE TABLE public.plant_store_plants ${COLUMNS}`)
    const sessions = ['public', 'other', 'other', 'other']
    const store = postgresStore({
      async connect() {
        const client = await pool.connect()
        await client.query(`SET search_path TO ${sessions.shift()}`)
        // Each connection is a new object, so the store checks each of them.
        return { query: (query) => client.query(query), release: () => client.release(), on: () => undefined }
      },
    })
    await store.ping()
    assert.equal(await store.create('ann', plants[0]!), true)
    assert.equal(await countRows(pool, 'public.plant_store_plants'), 1)
    assert.equal(await countRows(pool, 'other.plant_store_plants'), 0)
  })
})

test('the store ignores a temporary table at startup', async (t) => {
  const pool = await openPool(t)
  await pool.query(`CREATE TABLE plant_store_plants ${COLUMNS}; CREATE TEMP TABLE plant_store_plants ${COLUMNS}`)
  await exerciseStore(postgresStore(pool))
  assert.equal(await countRows(pool, 'public.plant_store_plants'), 1)
})

test('the store is unavailable until the search_path contains a usable schema', async (t) => {
  const pool = await openPool(t)
  const store = postgresStore(pool)
  await pool.query(`SET search_path TO ''`)
  for (const call of [() => store.migrate(), () => store.ping(), () => store.create('ann', plants[0]!)]) {
    const { isOutcomeUnknown, cause } = await captureUnavailable(call())
    const message = 'The search_path of the session contains no schema that exists and that the role can use.'
    assert.deepEqual([isOutcomeUnknown, (cause as Error).message], [false, message])
    // The pool replaces the connection; without a PostgreSQL server, the session stays the same.
    await pool.query(`SET search_path TO ''`)
  }
  await pool.query('SET search_path TO public')
  await store.migrate()
  await exerciseStore(store)
})

test('the store finds a table that is created later in any schema on the search_path', async (t) => {
  const pool = await openPool(t)
  await pool.query('CREATE SCHEMA other; SET search_path TO public, other')
  const store = postgresStore(pool)
  for (let times = 0; times < 2; times++) await assert.rejects(store.ping(), { code: '42P01' })
  await pool.query(`CREATE TABLE other.plant_store_plants ${COLUMNS}`)
  await exerciseStore(store)
  assert.equal(await countRows(pool, 'other.plant_store_plants'), 1)
})

test('the store recreates its table in the original schema after a search_path change', async (t) => {
  const pool = await openPool(t)
  await pool.query('CREATE SCHEMA other')
  const store = postgresStore(pool)
  await assert.rejects(store.ping(), { code: '42P01' })
  await store.migrate()
  await pool.query('SET search_path TO other')
  await exerciseStore(store)
  await pool.query('DROP TABLE public.plant_store_plants')
  await store.migrate()
  assert.equal(await countRows(pool, 'public.plant_store_plants'), 0)
})

test('the store stops using its table once the table is moved to another schema', async (t) => {
  const pool = await openPool(t)
  const store = postgresStore(pool)
  await store.migrate()
  await pool.query('CREATE SCHEMA other; SET search_path TO public, other')
  await pool.query('ALTER TABLE plant_store_plants SET SCHEMA other')
  await assert.rejects(store.ping(), { code: '42P01' })
  await assert.rejects(store.create('ann', plants[0]!), { code: '42P01' })
  await pool.query(`CREATE TABLE public.plant_store_plants ${COLUMNS}`)
  await exerciseStore(store)
  assert.equal(await countRows(pool, 'other.plant_store_plants'), 0)
})

test('the store creates its table in a permanent schema even if the search_path begins with pg_temp', async (t) => {
  const pool = await openPool(t)
  await pool.query('SET search_path TO pg_temp, public')
  const store = postgresStore(pool)
  await store.migrate()
  await exerciseStore(store)
  assert.equal(await countRows(pool, 'public.plant_store_plants'), 1)
})

suite('the store quotes the schema name', () => {
  for (const schema of ['Gärten', 'a.b', `it's "mine"`, 'back\\slash', 'x = y', '$1', '$user', 's'.repeat(63)]) {
    test(schema, async (t) => {
      const pool = await openPool(t)
      // In a search_path, this name refers to the schema named like the role.
      const [name, path] = schema === '$user' ? [pool.options.user!, schema] : [schema, schema]
      const [quoted, found] = [name, path].map((text) => `"${text.replaceAll('"', '""')}"`)
      await pool.query(`CREATE SCHEMA ${quoted}; SET search_path TO ${found}; SET standard_conforming_strings = off`)
      const store = postgresStore(pool)
      await store.migrate()
      await exerciseStore(store)
      assert.equal(await countRows(pool, `${quoted}.plant_store_plants`), 1)
    })
  }
})

test('stores with different schemas remain separate even if they share a connection', async (t) => {
  const pool = await openPool(t)
  await pool.query('CREATE SCHEMA other; SET search_path TO other')
  const second = postgresStore(pool)
  await second.migrate()
  await pool.query('SET search_path TO public')
  const first = postgresStore(pool)
  await first.migrate()
  for (const [store, tag] of [
    [first, 'public'],
    [second, 'other'],
    [first, 'public'],
    [second, 'other'],
  ] as const) {
    await store.create('ann', { id: 1n, name: 'fern', tag })
    assert.deepEqual(await listPlants(store), [{ id: 1n, name: 'fern', tag }])
  }
})

test('the store ignores functions, operators and types that shadow built-in ones', async (t) => {
  const pool = await openPool(t)
  const store = postgresStore(pool)
  await store.migrate()
  await pool.query(`CREATE SCHEMA other;
    CREATE FUNCTION other.equal(text, text) RETURNS boolean LANGUAGE sql IMMUTABLE AS 'SELECT true';
    CREATE OPERATOR other.= (FUNCTION = other.equal, LEFTARG = text, RIGHTARG = text);
    CREATE FUNCTION other.equal(bigint, bigint) RETURNS boolean LANGUAGE sql IMMUTABLE AS 'SELECT false';
    CREATE OPERATOR other.= (FUNCTION = other.equal, LEFTARG = bigint, RIGHTARG = bigint);
    CREATE OPERATOR other.>= (FUNCTION = other.equal, LEFTARG = bigint, RIGHTARG = bigint);
    CREATE FUNCTION other.octet_length(text) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT 9999';
    CREATE FUNCTION other.unnest(text[]) RETURNS SETOF text LANGUAGE sql IMMUTABLE AS 'SELECT NULL::pg_catalog.text';
    CREATE FUNCTION other.array_length(text[], int) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT 0';
    CREATE FUNCTION other.current_setting(text) RETURNS text LANGUAGE sql IMMUTABLE AS $$ SELECT 'LATIN1'::text $$;
    CREATE DOMAIN other.text AS pg_catalog.varchar(3); CREATE DOMAIN other.int8 AS pg_catalog.int2;
    CREATE TABLE other.pg_class (); CREATE TABLE other.pg_index (); CREATE TABLE other.pg_namespace ();
    SET search_path TO other, pg_catalog, public`)
  await exerciseStore(store)
  const other = postgresStore(pool)
  assert.deepEqual(await listPlants(other), plants.slice(0, 1))
  await other.ping()
})

test('the store distinguishes a missing tag from the tag "NULL" even if array_nulls is off', async (t) => {
  const pool = await openPool(t)
  const store = postgresStore(pool)
  await store.migrate()
  await pool.query('SET array_nulls = off')
  const tags = [undefined, 'NULL', 'null', '', undefined, '"NULL"', 't']
  const created = tags.map((tag, n) => ({ id: BigInt(n), name: 'NULL', ...(tag !== undefined && { tag }) }))
  assert.deepEqual(new Set(await Promise.all(created.map((plant) => store.create('ann', plant)))), new Set([true]))
  assert.deepEqual(await listPlants(store), created)
})

test('the store enables synchronous_commit for its writes even if another client has disabled it', async (t) => {
  const pool = await openPool(t)
  await postgresStore(pool).migrate()
  await pool.query(`CREATE TABLE seen (setting text); CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS
    $$ BEGIN INSERT INTO seen VALUES (current_setting('synchronous_commit')); RETURN NULL; END $$;
    CREATE TRIGGER noting AFTER INSERT OR DELETE ON plant_store_plants FOR EACH ROW EXECUTE FUNCTION note();
    SET synchronous_commit = off`)
  await exerciseStore(postgresStore(pool))
  assert.deepEqual((await pool.query('SELECT DISTINCT setting FROM seen')).rows, [{ setting: 'on' }])
  assert.deepEqual((await pool.query('SHOW synchronous_commit')).rows, [{ synchronous_commit: 'off' }])
})

for (const [name, config] of [
  ['this pool', { binary: true }],
  ['all pools', {}],
] as [string, PoolConfig][]) {
  test(`the store decodes plants correctly if the driver uses binary mode for ${name}`, async (t) => {
    const before = defaults.binary
    if (!('binary' in config)) defaults.binary = true
    t.after(() => (defaults.binary = before))
    const pool = await openPool(t, config)
    const store = postgresStore(pool)
    await store.migrate()
    await exerciseStore(store)
    const ids = [-(2n ** 63n), 0n, 2n ** 63n - 1n]
    await Promise.all(ids.map((id) => store.create('bob', { id, name: 'Föhre' })))
    assert.deepEqual(
      await listPlants(store, 'bob'),
      ids.map((id) => ({ id, name: 'Föhre' })),
    )
  })
}

for (const collation of ['C', 'en-x-icu']) {
  test(
    `the statements of the store use the index if the owner column has the collation ${collation}`,
    { skip: skipWithoutPostgres },
    async (t) => {
      const pool = await openPool(t)
      await pool.query(`CREATE TABLE plant_store_plants ${COLUMNS.replace('owner text', `owner text COLLATE "${collation}"`)};
      INSERT INTO plant_store_plants SELECT 'ann', id, 'fern' FROM generate_series(1, 10000) AS id`)
      const store = postgresStore(pool, { maxInFlight: 1 })
      await listPlants(store)
      await Promise.all([1n, 2n, 3n].map((id) => store.delete('ann', id)))
      const prepared = `SELECT name FROM pg_prepared_statements WHERE name LIKE 'plant-store %' ORDER BY name`
      const { rows } = await pool.query<{ name: string }>(prepared)
      const values = [`('{ann}', '{4}')`, `('ann', 4)`, `('ann', 4, 10)`]
      assert.equal(rows.length, values.length)
      for (const [at, statement] of rows.entries()) {
        const plan = await pool.query<{ 'QUERY PLAN': string }>(`EXPLAIN EXECUTE "${statement.name}" ${values[at]}`)
        const text = plan.rows.map((row) => row['QUERY PLAN']).join('\n')
        assert.match(text, /Index Cond: .*owner/)
        assert.doesNotMatch(text, /Seq Scan on plant/)
      }
    },
  )
}
