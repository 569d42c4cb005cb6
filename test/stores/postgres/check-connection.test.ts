// Warnings about tables that the store can use, and database problems that make it unready until they're fixed.
import assert from 'node:assert/strict'
import { after, suite, test } from 'node:test'
import { postgresStore } from '../../../src/stores/postgres/postgres-store.ts'
import { captureUnavailable } from '../../support/database/errors.ts'
import { skipWithoutPostgres, openDatabase } from '../../support/database/postgres-database.ts'
import { skipWithoutDebianServers, PostgresServer, query } from '../../support/wire/debian-servers.ts'
import { findCodeBlocks, readDocument } from '../../support/package/documents.ts'
import { startProgram } from '../../support/program/program.ts'

const database = await openDatabase({ after })
const pool = database.openPool()

const KEY = 'PRIMARY KEY (owner, id)'
const columnsWith = (collation: string, key = KEY) =>
  `(owner text COLLATE ${collation}, id bigint, name text, tag text${key && `, ${key}`})`

/** Creates a table, and a store whose warnings are collected. */
async function createTableAndStore(sql: string) {
  await pool.query(`DROP SCHEMA public CASCADE; CREATE SCHEMA public; ${sql}`)
  const warnings: string[] = []
  return { store: postgresStore(pool, { onWarning: (warning) => warnings.push(warning) }), warnings }
}

const unloggedWarning = 'The table public.plant_store_plants is unlogged, so a server crash empties it.'
const createCollationWarning = (collation: string) =>
  `The column owner of public.plant_store_plants has the collation ${collation}, not C. Its sort order can change ` +
  'with an update of the operating system; plants are then missing until the indexes are rebuilt.'

suite('the store warns once about an unsafe table', () => {
  for (const [name, sql, warnings] of [
    ['that is unlogged', `CREATE UNLOGGED TABLE plant_store_plants ${columnsWith('"C"')}`, [unloggedWarning]],
    [
      'with an unlogged partition',
      `CREATE TABLE plant_store_plants ${columnsWith('"C"')} PARTITION BY LIST (owner);
        CREATE UNLOGGED TABLE ann PARTITION OF plant_store_plants DEFAULT`,
      [unloggedWarning],
    ],
    [
      'whose owner column has a collation other than C',
      `CREATE TABLE plant_store_plants ${columnsWith('"und-x-icu"')}`,
      [createCollationWarning('"und-x-icu"')],
    ],
  ] as const) {
    test(name, { skip: name.includes('collation') && skipWithoutPostgres }, async () => {
      const { store, warnings: given } = await createTableAndStore(sql)
      // Concurrent calls open several connections, each of which the store checks.
      const plants = [1n, 2n, 3n].map((id) => store.create(`owner ${id}`, { id, name: 'fern' }))
      await Promise.all([
        ...plants,
        store.list('ann', { limit: 1, maxBytes: 1 }),
        store.delete('ann', 1n),
        store.ping(),
      ])
      assert.deepEqual(given, warnings)
    })
  }

  test(
    'the store warns about an owner column whose default collation is not C',
    { skip: skipWithoutDebianServers },
    async (t) => {
      const server = await PostgresServer.start(t)
      await server.query(`CREATE DATABASE other LOCALE 'C.utf8' TEMPLATE template0`)
      for (const [name, expected] of [
        ['postgres', []],
        ['other', [createCollationWarning('of the database')]],
      ] as const) {
        const program = await startProgram(t, {
          PLANT_STORE_URL: server.url.replace(/postgres$/, name),
          PLANT_STORE_MIGRATE: '1',
        })
        await program.waitUntilReady()
        // A table that the program creates has the collation C, whatever the collation of the database.
        assert.deepEqual(getWarnings(program.stderr.lines), [])
        await query(
          server.url.replace(/postgres$/, name),
          'ALTER TABLE plant_store_plants ALTER COLUMN owner TYPE text COLLATE "default"',
        )
        const other = await startProgram(t, { PLANT_STORE_URL: server.url.replace(/postgres$/, name) })
        await other.waitUntilReady()
        assert.deepEqual(getWarnings(other.stderr.lines), expected)
      }
    },
  )

  test(
    'the store warns if row-level security applies to its database role',
    { skip: skipWithoutPostgres },
    async (t) => {
      const { store, warnings } = await createTableAndStore(`CREATE TABLE plant_store_plants ${columnsWith('"C"')};
      ALTER TABLE plant_store_plants ENABLE ROW LEVEL SECURITY`)
      // Row-level security doesn't apply to the owner of the table.
      await store.ping()
      assert.deepEqual(warnings, [])
      const role = `${database.config.database}_clerk`
      await pool.query(`CREATE ROLE ${role}; GRANT USAGE ON SCHEMA public TO ${role};
      GRANT SELECT, INSERT, DELETE ON plant_store_plants TO ${role}`)
      const own = database.openPool({ options: `-c role=${role}` })
      t.after(async () => {
        await own.end()
        await pool.query(`DROP OWNED BY ${role}; DROP ROLE ${role}`)
      })
      const heard: string[] = []
      await postgresStore(own, { onWarning: (warning) => heard.push(warning) }).ping()
      assert.deepEqual(heard, [
        'Row-level security applies to this role in the table public.plant_store_plants. It can hide plants or reject new ones.',
      ])
    },
  )
})

suite('the store is unready', () => {
  for (const kind of ['INSERT', 'DELETE']) {
    test(`while a rule discards each ${kind}`, async () => {
      const { store } = await createTableAndStore(`CREATE TABLE plant_store_plants ${columnsWith('"C"')};
        CREATE RULE swallow AS ON ${kind} TO plant_store_plants DO INSTEAD NOTHING`)
      await assert.rejects(store.ping(), { code: '0A000' })
      await pool.query('DROP RULE swallow ON plant_store_plants')
      await store.ping()
    })
  }

  for (const column of ['owner', 'id', 'name', 'tag']) {
    test(
      `while the role of the connection can't read the column ${column}`,
      { skip: skipWithoutPostgres },
      async (t) => {
        const readable = ['owner', 'id', 'name', 'tag'].filter((name) => name !== column)
        const role = `${database.config.database}_reader`
        await createTableAndStore(`CREATE TABLE plant_store_plants ${columnsWith('"C"')}; CREATE ROLE ${role};
        GRANT USAGE ON SCHEMA public TO ${role}; GRANT INSERT, DELETE ON plant_store_plants TO ${role};
        GRANT SELECT (${readable.join()}) ON plant_store_plants TO ${role}`)
        const own = database.openPool({ options: `-c role=${role}` })
        t.after(async () => {
          await own.end()
          await pool.query(`DROP OWNED BY ${role}; DROP ROLE ${role}`)
        })
        const store = postgresStore(own)
        await assert.rejects(store.ping(), { code: '42501' })
        await pool.query(`GRANT SELECT ON plant_store_plants TO ${role}`)
        await store.ping()
      },
    )
  }
})

function getWarnings(lines: readonly string[]) {
  return lines
    .map((line) => JSON.parse(line) as { event: string; reason: unknown })
    .filter(({ event }) => event === 'warning')
    .map(({ reason }) => reason)
}

suite('outdated versions of collations', { skip: skipWithoutPostgres }, () => {
  const outdate = (version = "'1'") => `UPDATE pg_collation SET collversion = ${version} WHERE collname = 'und-x-icu'`
  // Not ALTER COLLATION, which fails if no version was recorded.
  const refresh = () => pool.query(outdate('pg_collation_actual_version(oid)'))
  const table = `CREATE TABLE plant_store_plants ${columnsWith('"und-x-icu"')}`
  for (const [name, sql, recorded] of [
    ['the store is unready if the owner column has an outdated collation', `${table}; ${outdate()}`, '1'],
    [
      'the store is unready if the unique index has an outdated collation',
      `CREATE TABLE plant_store_plants ${columnsWith('"C"', '')};
        CREATE UNIQUE INDEX ON plant_store_plants (owner COLLATE "und-x-icu", id); ${outdate()}`,
      '1',
    ],
    ['the store is unready if no version was recorded, as on Alpine', `${table}; ${outdate('NULL')}`, 'none'],
  ] as const) {
    test(name, async (t) => {
      const { store } = await createTableAndStore(sql)
      t.after(refresh)
      for (const call of [() => store.ping(), () => store.create('ann', { id: 1n, name: 'fern' })]) {
        const { isOutcomeUnknown, cause } = await captureUnavailable(call())
        assert.equal(isOutcomeUnknown, false)
        assert.equal(
          (cause as Error).message.replace(/(?<=actual version )[\d.]+/, '2'),
          `The sort order of the collation "und-x-icu" (recorded version ${recorded}, actual version 2) may have changed since the indexes of public.plant_store_plants were built, so plants could be missing from lists, or be created twice. Rebuild the indexes and refresh the collation version, or give the column owner the collation C.`,
        )
      }
      await pool.query('REINDEX TABLE plant_store_plants')
      await refresh()
      await store.ping()
    })
  }

  for (const [recorded, version, repair] of [
    ['1', "'1'", 'ALTER DATABASE other REFRESH COLLATION VERSION'],
    ['none', 'NULL', 'ALTER TABLE plant_store_plants ALTER COLUMN owner TYPE text COLLATE "C"'],
  ] as const) {
    const name = `the store is unready while the collation of the database is outdated (recorded version ${recorded})`
    test(name, { skip: skipWithoutDebianServers }, async (t) => {
      const server = await PostgresServer.start(t)
      await server.query(`CREATE DATABASE other TEMPLATE template0 LOCALE_PROVIDER icu ICU_LOCALE 'en'`)
      const url = server.url.replace(/postgres$/, 'other')
      await query(
        url,
        `CREATE TABLE plant_store_plants ${columnsWith('"default"')};
      UPDATE pg_database SET datcollversion = ${version} WHERE datname = 'other'`,
      )
      const program = await startProgram(t, { PLANT_STORE_URL: url })
      const { reason } = await program.waitForLogEvent('unreachable')
      assert.ok(
        String(reason).includes(
          `The sort order of the database's collation (recorded version ${recorded}, actual version `,
        ),
      )
      assert.equal((await program.fetch('/readyz')).status, 503)
      assert.equal((await program.fetch('/plants')).status, 503)
      await query(url, 'REINDEX TABLE plant_store_plants')
      await query(url, repair)
      await program.waitUntilReady()
    })
  }

  test('the store stays ready if only the name column has an outdated collation', async (t) => {
    const { store, warnings } = await createTableAndStore(`CREATE TABLE plant_store_plants ${columnsWith('"C"')};
      CREATE INDEX ON plant_store_plants (name COLLATE "und-x-icu"); ${outdate()}`)
    t.after(refresh)
    await store.ping()
    assert.deepEqual(warnings, [])
  })
})

test(
  'the SQL in docs/postgres.md repairs a table whose index has missed a duplicate',
  { skip: skipWithoutPostgres },
  async () => {
    const [REPAIR] = findCodeBlocks(readDocument('docs/postgres.md'), 'sql').filter(
      ({ heading }) => heading === 'Collations',
    )
    const columns = columnsWith('"und-x-icu"', '')
    const { store, warnings } = await createTableAndStore(`CREATE TABLE plant_store_plants ${columns};
    CREATE UNIQUE INDEX own ON plant_store_plants (owner, id);
    INSERT INTO plant_store_plants VALUES ('ann', 1, 'first'), ('ann', 2, 'fern'), ('Ann', 1, 'moss')`)
    // Creates a duplicate plant, as if the index had failed to find the first one.
    const isReady = (value: boolean) => `UPDATE pg_index SET indisready = ${value} WHERE indexrelid = 'own'::regclass`
    await pool.query(isReady(false))
    await pool.query(`INSERT INTO plant_store_plants VALUES ('ann', 1, 'again')`)
    await pool.query(isReady(true))
    await pool.query(REPAIR!.code)
    const { rows } = await pool.query<{ name: string }>('SELECT name FROM plant_store_plants ORDER BY owner, id')
    assert.deepEqual(
      rows.map(({ name }) => name),
      ['moss', 'first', 'fern'],
    )
    assert.equal(await store.create('ann', { id: 1n, name: 'again' }), false)
    assert.deepEqual(warnings, [])
  },
)
