import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { after, beforeEach, suite, test, type TestContext } from 'node:test'
import { types } from 'pg'
import { MAX_PAGE_BYTES } from '../../../src/plants/store.ts'
import { storeConformance } from '../../../src/conformance/store-conformance.ts'
import { postgresStore, schema, type QueryResult } from '../../../src/stores/postgres/postgres-store.ts'
import { assertExactPages } from '../../support/database/exact-pages.ts'
import { captureUnavailable } from '../../support/database/errors.ts'
import { createMockPool } from '../../support/database/mock-pool.ts'
import { skipWithoutPostgres, openDatabase } from '../../support/database/postgres-database.ts'
import { waitUntil } from '../../support/wait-until.ts'

// Not in a hook: Node doesn't wait for hooks if `--test-name-pattern` excludes every test of this file.
const database = await openDatabase({ after })
const pool = database.openPool()
await postgresStore(pool).migrate()
beforeEach(() => pool.query('TRUNCATE plant_store_plants'))

// An application may have changed the bigint parser; the store must not depend on the default.
types.setTypeParser(types.builtins.INT8, Number)
storeConformance({
  name: 'Postgres',
  test,
  create: () => postgresStore(pool),
  breakWrites: () =>
    pool.query(`
      CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN RAISE 'No space left on device' USING ERRCODE = 'disk_full'; END $$;
      CREATE TRIGGER fail BEFORE INSERT OR DELETE ON plant_store_plants EXECUTE FUNCTION fail()`),
  restore: () => pool.query('DROP FUNCTION fail CASCADE'),
})

test('the store ends each page exactly at limit or maxBytes', () => assertExactPages(postgresStore(pool), 100))

function createPlant(id: number, name = `plant ${id}`) {
  return { id: BigInt(id), name, tag: id % 2 === 0 ? 'even' : 'odd' }
}

const createPlants = (count: number) => Array.from({ length: count }, (_, id) => createPlant(id))

async function listPlants(owner: string) {
  const { plants } = await postgresStore(pool).list(owner, { limit: 1000, maxBytes: MAX_PAGE_BYTES })
  return plants.map(({ id, name, tag }) => ({ id, name, tag }))
}

test('the store is unready until migrate() creates the table', async () => {
  const store = postgresStore(pool)
  await store.ping()
  await pool.query('DROP TABLE plant_store_plants')
  await assert.rejects(store.ping(), { code: '42P01' })
  await store.migrate()
  await store.create('ann', createPlant(1))
  await store.migrate()
  assert.deepEqual(await listPlants('ann'), [createPlant(1)])
})

test('concurrent migrate() calls create the table without an error', { skip: skipWithoutPostgres }, async () => {
  const rivals = Array.from({ length: 8 }, () => postgresStore(database.openPool({ max: 1 })))
  await Promise.all(rivals.map((store) => store.ping()))
  for (let round = 0; round < 5; round++) {
    await pool.query('DROP TABLE plant_store_plants')
    await Promise.all(rivals.map((store) => store.migrate()))
    assert.deepEqual(await listPlants('ann'), [])
  }
})

test("migrate() rejects with the server's error if the table cannot be created", async () => {
  await pool.query('DROP TABLE plant_store_plants')
  await pool.query('CREATE TYPE plant_store_plants AS ENUM ()')
  await assert.rejects(postgresStore(pool).migrate(), { code: '42710' })
  await pool.query('DROP TYPE plant_store_plants')
  await pool.query(schema)
})

/**
 * Replaces the table until the test ends. Returns a store that uses the replacement.
 */
async function replaceTable(t: TestContext, sql: string) {
  const replace = (text: string) => pool.query(`DROP SCHEMA public CASCADE; CREATE SCHEMA public; ${text}`)
  t.after(() => replace(schema))
  await replace(sql)
  return postgresStore(pool)
}

/** Marks an index as invalid, like a failed CREATE INDEX CONCURRENTLY. */
const INVALIDATE_INDEX = `UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'plant_store_plants_own'::regclass`

suite('the store rejects a table', () => {
  const key = 'PRIMARY KEY (owner, id)'
  const sound = `id bigint, name text, tag text, ${key}`
  const noKey = 'it has no unique index on (owner, id) that is valid, not partial and not deferrable'
  const types =
    'id is integer, not bigint; its column name is character varying(10), not text; its column tag is json, not text'
  const unique = (...names: string[]) =>
    names.map((name) => `its index plant_store_plants_${name} is unique on columns other than (owner, id)`).join('; ')
  const loose = `CREATE COLLATION loose (provider = icu, locale = 'und-u-ks-level2', deterministic = false)`
  const index = 'CREATE UNIQUE INDEX plant_store_plants_own ON plant_store_plants'
  const required = 'its column x is required and has no default'
  for (const [name, columns, problem, before = '', after = ''] of [
    ['without a primary key', 'id bigint, name text, tag text', noKey],
    [
      'with a deferrable primary key',
      `id bigint, name text, tag text, ${key} DEFERRABLE`,
      `${noKey}; its index plant_store_plants_pkey is deferrable`,
    ],
    [
      'with a primary key on other columns',
      'id bigint PRIMARY KEY, name text, tag text, UNIQUE (id, tag)',
      `${noKey}; ${unique('id_tag_key', 'pkey')}`,
    ],
    ['without a tag column', `id bigint, name text, ${key}`, 'it has no column tag'],
    ['whose tag column is NOT NULL', `id bigint, name text, tag text NOT NULL, ${key}`, 'its column tag is NOT NULL'],
    [
      'whose tag column has a check constraint that rejects NULL',
      `${sound}, CHECK (tag IS NOT NULL)`,
      'its column tag is NOT NULL',
    ],
    [
      'with child tables',
      sound,
      'other tables inherit from it, and its unique index does not apply to their rows',
      '',
      'CREATE TABLE child () INHERITS (plant_store_plants)',
    ],
    ['without partitions', `${sound}) PARTITION BY LIST (owner`, 'it has no partitions'],
    ['whose columns have other types', `id integer, name varchar(10), tag json, ${key}`, `its column ${types}`],
    ['whose ids must be unique across owners', `${sound}, UNIQUE (id)`, unique('id_key')],
    ['whose names must be unique across owners', `${sound}, UNIQUE (name)`, unique('name_key')],
    ['whose names must be unique for each owner', `${sound}, UNIQUE (owner, name)`, unique('owner_name_key')],
    ['with an exclusion constraint', `${sound}, EXCLUDE USING btree (name WITH =)`, unique('name_excl')],
    ['with a unique index on an expression', sound, unique('own'), '', `${index} (lower(owner), id)`],
    ['with a partial unique index', sound, unique('own'), '', `${index} (id) WHERE tag IS NULL`],
    [
      'with a second unique constraint that is deferrable',
      `${sound}, UNIQUE (owner, id) DEFERRABLE`,
      'its index plant_store_plants_owner_id_key is deferrable',
    ],
    ['with an invalid unique index', sound, unique('own'), '', `${index} (id); ${INVALIDATE_INDEX}`],
    ...(
      [
        ['that ignores trailing spaces, which merges owners', 'bpchar_ops', ''],
        [
          'that is user-defined, which could ignore case and merge owners',
          'loose',
          `CREATE FUNCTION compare(text, text) RETURNS int IMMUTABLE LANGUAGE sql
              AS 'SELECT bttextcmp(lower($1), lower($2))';
            CREATE OPERATOR CLASS loose FOR TYPE text USING btree AS FUNCTION 1 compare(text, text)`,
        ],
      ] as const
    ).flatMap(([what, operators, before]) => {
      const wrong = 'its index plant_store_plants_own has an operator class that can treat different owners as equal'
      const after = `${index} (owner ${operators}, id)`
      return [
        [
          `whose only unique index has an operator class ${what}`,
          'id bigint, name text, tag text',
          `${noKey}; ${wrong}`,
          before,
          after,
        ],
        [`with a second unique index with an operator class ${what}`, sound, wrong, before, after],
      ] as const
    }),
    [
      'whose only unique index is partial',
      'id bigint, name text, tag text',
      noKey,
      '',
      `${index} (owner, id) WHERE id > 0`,
    ],
    [
      'whose only unique index is invalid',
      'id bigint, name text, tag text',
      noKey,
      '',
      `${index} (owner, id); ${INVALIDATE_INDEX}`,
    ],
    ['with another column that is NOT NULL and has no default', `x int NOT NULL, ${sound}`, required],
    ['with another column whose domain is NOT NULL', `x d, ${sound}`, required, 'CREATE DOMAIN d AS text NOT NULL'],
    [
      'with another column whose domain is based on a NOT NULL domain',
      `x e, ${sound}`,
      required,
      'CREATE DOMAIN d AS text NOT NULL; CREATE DOMAIN e AS d',
    ],
    [
      'with another column whose domain has a check constraint that rejects NULL',
      `x d, ${sound}`,
      required,
      'CREATE DOMAIN d AS text CHECK (VALUE IS NOT NULL)',
    ],
    ['with another column whose check constraint rejects NULL', `x int CHECK (x IS NOT NULL), ${sound}`, required],
    [
      'whose id column is generated',
      sound.replace('bigint', 'bigint GENERATED ALWAYS AS IDENTITY'),
      'its column id is generated',
    ],
    [
      'whose tag column is generated',
      sound.replace('tag text', 'tag text GENERATED ALWAYS AS (name) STORED'),
      'its column tag is generated',
    ],
    [
      'with a partition that has another unique index',
      `${sound}) PARTITION BY LIST (owner`,
      unique('own'),
      '',
      `CREATE TABLE ann PARTITION OF plant_store_plants DEFAULT;
        CREATE UNIQUE INDEX plant_store_plants_own ON ann (id)`,
    ],
    [
      'with a partition that requires a value for another column',
      `x int, ${sound}) PARTITION BY LIST (owner`,
      required,
      '',
      'CREATE TABLE ann PARTITION OF plant_store_plants (x NOT NULL) DEFAULT',
    ],
  ] as const) {
    test(name, async (t) => {
      const store = await replaceTable(
        t,
        `${before}; CREATE TABLE plant_store_plants (owner text, ${columns}); ${after}`,
      )
      for (const call of [() => store.ping(), () => store.create('ann', createPlant(1)), () => store.migrate()]) {
        const { isOutcomeUnknown, cause } = await captureUnavailable(call())
        const message = `UnsuitableDatabaseError: The table public.plant_store_plants cannot be used: ${problem}.`
        assert.deepEqual([isOutcomeUnknown, String(cause)], [false, message])
      }
    })
  }

  for (const [name, sql, problem] of [
    [
      'whose owner column has a nondeterministic collation, which merges owners',
      `CREATE TABLE plant_store_plants (owner text COLLATE loose, ${sound})`,
      'its column owner has the collation loose, which treats different owners as equal; ' +
        `${noKey}; its index plant_store_plants_pkey has a collation that treats different owners as equal`,
    ],
    [
      'whose only unique index has a nondeterministic collation, which merges owners',
      `CREATE TABLE plant_store_plants (owner text, id bigint, name text, tag text); ${index} (owner COLLATE loose, id)`,
      `${noKey}; its index plant_store_plants_own has a collation that treats different owners as equal`,
    ],
    [
      'with a second unique index with a nondeterministic collation, which merges owners',
      `CREATE TABLE plant_store_plants (owner text, ${sound}); ${index} (owner COLLATE loose, id)`,
      'its index plant_store_plants_own has a collation that treats different owners as equal',
    ],
    [
      'that is a materialized view',
      `CREATE TABLE kept (owner text, ${sound}); CREATE MATERIALIZED VIEW plant_store_plants AS SELECT * FROM kept`,
      'it is not a table',
    ],
    [
      'that is a composite type',
      'CREATE TYPE plant_store_plants AS (owner text, id bigint, name text, tag text)',
      'it is not a table',
    ],
  ] as const) {
    test(name, { skip: skipWithoutPostgres }, async (t) => {
      const store = await replaceTable(t, `${loose}; ${sql}`)
      const { cause } = await captureUnavailable(store.ping())
      assert.equal((cause as Error).message, `The table public.plant_store_plants cannot be used: ${problem}.`)
    })
  }
})

suite('the store accepts a table', () => {
  const columns = 'at timestamp DEFAULT now(), tag text, name text, id bigint, owner text, PRIMARY KEY (owner, id)'
  const index = 'CREATE UNIQUE INDEX ON plants (id, owner) INCLUDE (tag)'
  for (const [name, sql] of [
    ['with an additional column and another column order', `CREATE TABLE plants (${columns})`],
    [
      'with a unique index instead of a primary key, and varchar columns without a limit',
      `CREATE TABLE plants (owner varchar, id bigint, name varchar, tag varchar); ${index}`,
    ],
    [
      'with more indexes on (owner, id), as during REINDEX CONCURRENTLY',
      `CREATE TABLE plants (${columns}); CREATE UNIQUE INDEX plants_pkey_ccnew ON plants (owner, id);
        CREATE UNIQUE INDEX ON plants (owner, id) WHERE tag IS NULL; CREATE INDEX ON plants (name)`,
    ],
    [
      'with additional columns that have defaults or are generated',
      `CREATE DOMAIN d AS text NOT NULL DEFAULT 'd'; CREATE TABLE plants (a serial, b int NOT NULL DEFAULT 1, c d,
        e int GENERATED ALWAYS AS IDENTITY, f text NOT NULL GENERATED ALWAYS AS (name) STORED, ${columns})`,
    ],
    ['that is a view', `CREATE TABLE kept (${columns}); CREATE VIEW plants AS SELECT * FROM kept`],
  ] as const) {
    test(name, async (t) => {
      const store = await replaceTable(t, sql.replaceAll('plants', 'plant_store_plants'))
      await store.ping()
      const creates = [1, 1].map((id) => store.create('ann', createPlant(id)))
      assert.deepEqual(await Promise.all(creates), [true, false])
      assert.equal(await store.delete('ann', 1n), true)
    })
  }
})

test('the first of several concurrent creates or deletes with the same id wins', async () => {
  const store = postgresStore(pool, { maxInFlight: 1 })
  const blocker = store.create('ann', createPlant(0))
  const names = ['first', 'second', 'third']
  const creates = names
    .flatMap((name) => [createPlant(3, name), createPlant(2, name)])
    .map((kept) => store.create('ann', kept))
  assert.deepEqual(await Promise.all([blocker, ...creates]), [true, true, true, false, false, false, false])
  assert.deepEqual(await listPlants('ann'), [createPlant(0), createPlant(2, 'first'), createPlant(3, 'first')])
  await store.create('bob', createPlant(2))
  const deletes = ['ann', 'ann', 'ann', 'bob', 'bob'].map((owner, i) => store.delete(owner, i === 0 ? 1n : 2n))
  assert.deepEqual(await Promise.all(deletes), [false, true, false, true, false])
})

test('stores that write the same plants in batches never deadlock', { skip: skipWithoutPostgres }, async () => {
  const deadlocks: unknown[] = []
  function note(error: unknown): never {
    deadlocks.push(error)
    throw error
  }
  const stores = Array.from({ length: 4 }, () => {
    const own = database.openPool()
    const noting = createMockPool((query) => own.query(query).catch(note))
    return postgresStore(noting, { maxBatch: 400 })
  })
  for (let round = 0; round < 40; round++) {
    const calls = stores.flatMap((store, n) => {
      const ids = n % 2 === 0 ? createPlants(400) : createPlants(400).reverse()
      return ids.map((kept) => (round % 2 === 0 ? store.create('ann', kept) : store.delete('ann', kept.id)))
    })
    const outcomes = await Promise.all(calls)
    assert.equal(outcomes.filter(Boolean).length, 400)
  }
  assert.deepEqual(deadlocks, [])
})

test('a batch creates all plants except those that the database rejects', async (t) => {
  await pool.query(`ALTER TABLE plant_store_plants ADD CONSTRAINT no_weeds CHECK (name <> 'weed')`)
  t.after(() => pool.query('ALTER TABLE plant_store_plants DROP CONSTRAINT no_weeds'))
  const store = postgresStore(pool, { maxInFlight: 1 })
  // Random text, so that the server can't compress it.
  const long = Array.from({ length: 300 }, () => randomUUID()).join('')
  const blocker = store.create('ann', createPlant(100))
  const names = ['a', 'too long', 'c\0', 'd', 'weed', 'f', 'g']
  const creates = names.map((name, id) => store.create(name === 'too long' ? long : 'ann', createPlant(id, name)))
  const created = await Promise.allSettled(creates)
  await blocker
  const outcomes = created.map((each) => ('value' in each ? each.value : (each.reason as { code?: string }).code))
  assert.deepEqual(outcomes, [true, undefined, '22021', true, '23514', true, true])
  assert.match(
    String((created[1] as PromiseRejectedResult).reason),
    /^Error: The owner is too long for the index of the table; /,
  )
  const kept = (await listPlants('ann')).map(({ name }) => name)
  assert.deepEqual(kept, ['a', 'd', 'f', 'g', 'plant 100'])
})

test('the store fetches little more than a page from the server, even if plants are large', async () => {
  const asked: (string | undefined)[] = []
  let sent = 0
  const store = postgresStore(
    createMockPool(async (query) => {
      const result: QueryResult = await pool.query(query)
      asked.push(query.name?.replace(/ [0-9a-f]{16}$/, ''))
      sent += result.rows.flat().join('').length
      return result
    }),
  )
  const largePlants = Array.from({ length: 20 }, (_, i) => createPlant(i, 'x'.repeat(i < 10 ? 50_000 : 2000)))
  for (const kept of [...largePlants, ...createPlants(50).slice(20)])
    await pool.query('INSERT INTO plant_store_plants VALUES ($1, $2, $3, $4)', ['ann', kept.id, kept.name, kept.tag])
  const pages: string[] = []
  for (let after: bigint | undefined, hasMore = true; hasMore;) {
    const page = await store.list('ann', { limit: 20, maxBytes: 250_000, after })
    hasMore = page.hasMore
    after = page.plants.at(-1)?.id
    pages.push(`${page.plants.length} ${Math.round(sent / 1000)}`)
    sent = 0
  }
  assert.deepEqual(pages, ['5 250', '5 250', '20 20', '20 0'])
  const [small, large] = ['plant-store list', 'plant-store list large']
  assert.deepEqual(asked, [small, large, large, large, large])
})

test('the plant that a write probe creates is never listed', { skip: skipWithoutPostgres }, async (t) => {
  const store = postgresStore(pool)
  const befall = (code: string) =>
    pool.query(`CREATE OR REPLACE FUNCTION befall() RETURNS trigger LANGUAGE plpgsql AS
      $$ BEGIN ${code}; RETURN OLD; END $$`)
  await befall(`RAISE EXCEPTION 'no space left on device' USING ERRCODE = '53100'`)
  t.after(() => pool.query('DROP FUNCTION befall CASCADE'))
  await pool.query('CREATE TRIGGER disk BEFORE INSERT ON plant_store_plants FOR EACH ROW EXECUTE FUNCTION befall()')
  await captureUnavailable(store.create('ann', createPlant(1)))
  await pool.query('DROP TRIGGER disk ON plant_store_plants')

  await befall('PERFORM pg_advisory_xact_lock(1)')
  await pool.query('CREATE TRIGGER wait BEFORE DELETE ON plant_store_plants FOR EACH ROW EXECUTE FUNCTION befall()')
  const holder = await pool.connect()
  t.after(() => holder.release(true))
  await holder.query('BEGIN; SELECT pg_advisory_xact_lock(1)')
  const pinged = store.ping()
  const waiting = `SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`
  await waitUntil(async () => (await pool.query(waiting)).rows.length > 0)
  assert.deepEqual(await listPlants(''), [])
  await holder.query('ROLLBACK')
  await pinged
  assert.deepEqual(await listPlants(''), [])
})

test('a batch of deletes uses an index scan even if the statement was planned while the table was empty', async () => {
  const connection = skipWithoutPostgres === false ? database.openPool({ max: 1 }) : pool
  const store = postgresStore(connection, { maxInFlight: 1 })
  // The server plans a prepared statement five times before it considers a generic plan.
  for (let round = 0; round < 8; round++) await Promise.all(createPlants(50).map(({ id }) => store.delete('ann', id)))
  await connection.query(`INSERT INTO plant_store_plants SELECT 'ann', id, 'fern' FROM generate_series(1, 10000) AS id`)
  const prepared = `SELECT name FROM pg_prepared_statements WHERE name LIKE 'plant-store delete many %'`
  const name = (await connection.query<{ name: string }>(prepared)).rows[0]!.name
  const { rows } = await connection.query<{ 'QUERY PLAN': string }>(`EXPLAIN EXECUTE "${name}" ('{ann}', '{1}')`)
  const plan = rows.map((row) => row['QUERY PLAN']).join('\n')
  assert.match(plan, /Index.* on plant_store_plants/)
  assert.doesNotMatch(plan, /Seq Scan/)
})
