import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import process from 'node:process'
import { after, suite, test, type TestContext } from 'node:test'
import { promisify } from 'node:util'
import { storeConformance } from '../../../src/conformance/store-conformance.ts'
import type { PageRequest, Store } from '../../../src/plants/store.ts'
import { sqliteStore } from '../../../src/stores/sqlite/sqlite-store.ts'
import type { SqliteHandle, SqliteStatement, SqliteValue } from '../../../src/stores/sqlite/sqlite-store.ts'
import { assertExactPages } from '../../support/database/exact-pages.ts'
import {
  lockFromOtherProcess,
  createDatabasePath,
  openSqlite,
  openSqliteStore,
  runInOtherProcess,
  skipWithoutSqlite,
  skipWithoutFileUris,
} from '../../support/database/sqlite-file.ts'
import { createTempDirectory } from '../../support/temp-files.ts'
import { listStoredIds } from '../../support/wire/service.ts'

/** Executes SQL on a database file. */
function runSql(path: string, sql: string): void {
  const { DatabaseSync } = process.getBuiltinModule('node:sqlite')
  const handle = new DatabaseSync(path)
  handle.exec(sql)
  handle.close()
}

const createPlant = (id: bigint, name = `plant ${id}`) => ({ id, name })

async function listPlants(store: Store, page: Partial<PageRequest> = {}, owner = 'ada') {
  const { plants } = await store.list(owner, { limit: 1000, maxBytes: Number.MAX_SAFE_INTEGER, ...page })
  return plants.map(({ id, name, tag }) => (tag === undefined ? { id, name } : { id, name, tag }))
}

// better-sqlite3 isn't a dependency, because installing it downloads or compiles a binary. It's tested if it was
// installed with `npm install --no-save`.
const tryImport = (name: string): Promise<unknown> => import(name).catch(() => undefined)
const betterSqlite3 = (await tryImport('better-sqlite3')) as { default: new (path: string) => SqliteHandle } | undefined
const directory = createTempDirectory({ after })
let fileCount = 0
for (const [name, skipped, open] of [
  ['a path', skipWithoutSqlite, (path: string) => path],
  [
    'a better-sqlite3 handle',
    !betterSqlite3 && 'better-sqlite3 is not installed',
    (path: string) => new betterSqlite3!.default(path),
  ],
] as const) {
  suite(`the SQLite store with ${name}`, { skip: skipped }, () => {
    let path = ''
    const create = (): Store => {
      path = join(directory, `${++fileCount}.db`)
      return sqliteStore(open(path), { busyTimeoutMs: 20 })
    }
    let unlock: (() => Promise<void>) | undefined
    storeConformance({
      name: 'SQLite',
      test,
      create,
      breakWrites: async () => (unlock = await lockFromOtherProcess({ after }, path)),
      restore: () => unlock!(),
    })

    test('the SQLite store ends each page exactly at limit or maxBytes', () => assertExactPages(create(), 100))
  })
}

test('sqliteStore throws an error for a path if node:sqlite is missing', async () => {
  const withoutSqlite = skipWithoutSqlite === false ? ['--no-experimental-sqlite'] : []
  const program = `
    import { sqliteStore } from './src/stores/sqlite/sqlite-store.ts'
    try { sqliteStore('plants.db') } catch (error) { console.log(error.message) }`
  const args = [...withoutSqlite, ...process.execArgv, '--input-type=module', '--eval', program]
  const { stdout } = await promisify(execFile)(process.execPath, args)
  assert.equal(
    stdout,
    'SQLite needs Node 22.13 or later; with better-sqlite3, pass an open database instead of a path\n',
  )
})

test('sqliteStore throws a TypeError:', async (t) => {
  const time = 'options.busyTimeoutMs must be a whole number from 0 to 2147483647'
  const rows: [source: unknown, options: object, message: string][] = [
    ['', {}, "source must be a path or an open database, not ''"],
    [undefined, {}, 'source must be a path or an open database, not undefined'],
    [null, {}, 'source must be a path or an open database, not null'],
    [{ path: 'x.db' }, {}, 'source must be a path or an open database, not [Object]'],
    ['x.db', { migrate: 1 }, 'options.migrate must be true or false, not 1'],
    ['x.db', { onWarning: 1 }, 'options.onWarning must be a function, not 1'],
    ['x.db', { busyTimeoutMs: -1 }, `${time}, not -1`],
    ['x.db', { busyTimeoutMs: 2 ** 31 }, `${time}, not 2147483648`],
    ['x.db', { maxBatch: 0 }, 'options.maxBatch must be a whole number from 1 to 9007199254740991, not 0'],
  ]
  for (const [source, options, message] of rows) {
    await t.test(message, () => {
      assert.throws(() => sqliteStore(source as string, options), new TypeError(message))
    })
  }
})

test('sqliteStore enables WAL mode and full synchronization', { skip: skipWithoutSqlite }, (t) => {
  const handle = openSqlite(t, createDatabasePath(t))
  sqliteStore(handle)
  const ask = (pragma: string): unknown => Object.values(handle.prepare(`PRAGMA ${pragma}`).all()[0] as object)[0]
  const values = ['journal_mode', 'synchronous', 'fullfsync', 'journal_size_limit', 'wal_autocheckpoint'].map(ask)
  assert.deepEqual(values, ['wal', 2, 1, 16 * 2 ** 20, 1000])
})

test('sqliteStore with migrate: false', { skip: skipWithoutSqlite }, async (t) => {
  const path = createDatabasePath(t)
  await t.test('creates no table', (t) => {
    const message = `SQLite database ${path}: the database is empty and migrations are disabled`
    writeFileSync(path, '')
    assert.throws(() => sqliteStore(path, { migrate: false }), { name: 'Error', message })
    assert.throws(() => sqliteStore(openSqlite(t, path), { migrate: false }), { name: 'Error', message })
    assert.equal(readFileSync(path, 'utf8'), '')
  })
  await t.test('opens an existing database', async () => {
    await sqliteStore(path).close()
    const store = sqliteStore(path, { migrate: false })
    assert.equal(await store.create('ada', createPlant(1n)), true)
    await store.close()
  })
})

test(
  'ping() fails but list() works while another process holds the write lock',
  { skip: skipWithoutSqlite },
  async (t) => {
    const { path, store } = openSqliteStore(t, { busyTimeoutMs: 1_000_000 })
    await store.create('ada', createPlant(1n))
    const letGo = await lockFromOtherProcess(t, path)
    const error = { name: 'StoreUnavailableError', message: `SQLite database ${path}: database is locked` }
    const startedAt = performance.now()
    await assert.rejects(async () => store.ping(), error)
    assert.ok(performance.now() - startedAt < 10_000)
    assert.deepEqual(await listStoredIds(store), [1n])
    await letGo()
    await store.ping()
  },
)

// SQLite reports this lock immediately, regardless of its busy timeout.
test(
  'sqliteStore waits for another process that is reading a file without a WAL',
  { skip: skipWithoutSqlite },
  async (t) => {
    const path = createDatabasePath(t)
    const end = (await runInOtherProcess(t, path, `${TABLE}; BEGIN; SELECT * FROM plants`, 200))()
    await sqliteStore(path, { busyTimeoutMs: 60_000 }).close()
    await end
  },
)

test('sqliteStore waits for another process that has locked the file', { skip: skipWithoutSqlite }, async (t) => {
  const path = createDatabasePath(t)
  const letGo = await lockFromOtherProcess(t, path, 200)
  const free = letGo()
  // Opening blocks this thread.
  await sqliteStore(path, { busyTimeoutMs: 60_000 }).close()
  await free
})

suite('sqliteStore rejects an unsuitable database without changing the file:', { skip: skipWithoutSqlite }, () => {
  const other = 'not a plant-store database; it was left unchanged'
  const rows: [string, (path: string) => unknown, string][] = [
    ['a file that is not a database', (path) => writeFileSync(path, 'Monstera'.repeat(1000)), 'file is not a database'],
    ['a database of another application', (path) => runSql(path, 'CREATE TABLE t (x)'), other],
    ['a database with another table', (path) => runSql(path, `${TABLE}; CREATE TABLE t (x)`), other],
    ['a table with another primary key', (path) => runSql(path, TABLE.replace('owner, id', 'id')), other],
    ['a table with an additional index', (path) => runSql(path, `${TABLE}; CREATE INDEX i ON plants (name)`), other],
    ['an empty database with another application_id', (path) => runSql(path, 'PRAGMA application_id = 1'), other],
    ['an empty database with a user_version', (path) => runSql(path, 'PRAGMA user_version = 1'), other],
    [
      'a newer schema version',
      (path) =>
        sqliteStore(path)
          .close()
          .then(() => runSql(path, 'PRAGMA user_version = 2')),
      'schema version 2 is not supported; this version of plant-store uses 1',
    ],
  ]
  for (const [name, make, reason] of rows) {
    test(name, async (t) => {
      const path = createDatabasePath(t)
      await make(path)
      const before = readFileSync(path)
      const error = { message: `SQLite database ${path}: ${reason}` }
      assert.throws(() => sqliteStore(path), error)
      // SQLite deletes the WAL when the last connection is closed.
      assert.equal(existsSync(`${path}-wal`), false)
      assert.throws(() => sqliteStore(openSqlite(t, path)), error)
      assert.deepEqual(readFileSync(path), before)
    })
  }
})

test('sqliteStore rejects a read-only handle with an error that names the file', { skip: skipWithoutSqlite }, (t) => {
  const path = createDatabasePath(t)
  sqliteStore(openSqlite(t, path))
  const before = readFileSync(path)
  assert.throws(() => sqliteStore(openSqlite(t, path, { readOnly: true })), {
    message: `SQLite database ${path}: attempt to write a readonly database`,
  })
  assert.deepEqual(readFileSync(path), before)
})

test('list() reads no more plants after a page has reached maxBytes', { skip: skipWithoutSqlite }, async (t) => {
  const path = createDatabasePath(t)
  const database = openSqlite(t, path)
  const prepare = database.prepare.bind(database)
  let characters = 0
  function* count(rows: Iterable<unknown>): Generator {
    for (const row of rows) {
      characters += Object.values(row as object).join('').length
      yield row
    }
  }
  database.prepare = (sql) => {
    const statement = prepare(sql)
    const iterate = statement.iterate.bind(statement)
    return Object.assign(statement, { iterate: (...values: SqliteValue[]) => count(iterate(...values)) })
  }
  const store = sqliteStore(database)
  const plants = ['x', 'y', 'z'].map((letter, i) => createPlant(BigInt(i + 1), letter.repeat(50_000)))
  for (const each of plants) await store.create('ada', each)
  assert.deepEqual(await listPlants(store, { maxBytes: 50_001 }), plants.slice(0, 2))
  assert.ok(characters > 100_000 && characters < 101_000, `${characters}`)
})

test('list() ends its read transaction when a page reaches maxBytes', { skip: skipWithoutSqlite }, async (t) => {
  const { path, store } = openSqliteStore(t)
  await Promise.all([1n, 2n, 3n].map(async (id) => store.create('ada', createPlant(id))))
  const elsewhere = openSqlite(t, path)
  assert.deepEqual(await listPlants(store, { maxBytes: 1 }), [createPlant(1n)])
  assert.deepEqual(await listPlants(store, { maxBytes: 1, after: 1n }), [createPlant(2n)])
  await store.create('ada', createPlant(4n))
  const [checkpoint] = elsewhere.prepare('PRAGMA wal_checkpoint(TRUNCATE)').all()
  assert.deepEqual({ ...(checkpoint as object) }, { busy: 0, log: 0, checkpointed: 0 })
})

const NODE_22_13 = { setReturnArrays: undefined }
function asBetterSqlite3(statement: SqliteStatement) {
  return {
    safeIntegers: statement.setReadBigInts?.bind(statement),
    raw: statement.setReturnArrays?.bind(statement),
    setReadBigInts: undefined,
    setReturnArrays: undefined,
  }
}
for (const [name, has] of [
  ['whose rows are objects, as in Node 22.13', () => NODE_22_13],
  ['whose statements have the methods of better-sqlite3', asBetterSqlite3],
] as const) {
  test(`sqliteStore accepts a handle ${name}`, { skip: skipWithoutSqlite }, async (t) => {
    const handle = openSqlite(t, createDatabasePath(t))
    function prepare(sql: string) {
      const statement = handle.prepare(sql)
      return Object.assign(statement, has(statement) as object)
    }
    const store = sqliteStore({ exec: (sql) => handle.exec(sql), close: () => handle.close(), prepare })
    const plants = [createPlant(1n), createPlant(2n ** 63n - 1n)]
    for (const each of plants) assert.equal(await store.create('ada', each), true)
    assert.deepEqual(await listPlants(store), plants)
  })
}

suite('sqliteStore accepts a handle with any options', { skip: skipWithoutSqlite }, () => {
  for (const options of [
    { readBigInts: true },
    { returnArrays: true },
    { returnArrays: true, readBigInts: true },
    { allowBareNamedParameters: false, allowUnknownNamedParameters: true },
    { timeout: 1000 },
  ]) {
    test(JSON.stringify(options), async (t) => {
      const store = sqliteStore(openSqlite(t, createDatabasePath(t), options))
      const plants = [createPlant(-(2n ** 63n)), { ...createPlant(2n ** 63n - 1n), tag: 'tropical' }]
      for (const each of plants) assert.equal(await store.create('ada', each), true)
      assert.equal(await store.create('ada', plants[0]!), false)
      assert.deepEqual(await listPlants(store), plants)
      assert.equal(await store.delete('ada', plants[0]!.id), true)
      await store.ping()
    })
  }
})

test('the SQLite store ignores a temporary table with the same name', { skip: skipWithoutSqlite }, async (t) => {
  const handle = openSqlite(t, createDatabasePath(t))
  handle.exec('CREATE TEMP TABLE plants (owner, id, name, tag)')
  const store = sqliteStore(handle)
  assert.equal(await store.create('ada', createPlant(1n)), true)
  assert.equal(await store.create('ada', createPlant(1n)), false)
  assert.deepEqual(await listPlants(store), [createPlant(1n)])
  assert.equal(handle.prepare('SELECT * FROM main.plants').all().length, 1)
  assert.equal(await store.delete('ada', 1n), true)
})

/** Wraps a handle, and overrides members of its statements. */
function wrapStatements(handle: SqliteHandle, change: (statement: SqliteStatement) => object): SqliteHandle {
  const prepare = (sql: string) => {
    const statement = handle.prepare(sql)
    return Object.assign(statement, change(statement))
  }
  return { exec: (sql) => handle.exec(sql), close: () => handle.close(), prepare }
}

test('sqliteStore rejects a closed handle', { skip: skipWithoutSqlite }, () => {
  const { DatabaseSync } = process.getBuiltinModule('node:sqlite')
  const handle = new DatabaseSync(':memory:', { open: false })
  assert.throws(() => sqliteStore(handle), { message: 'SQLite database handle: database is not open' })
})

test(
  'sqliteStore rejects a handle with an open transaction, without ending the transaction',
  { skip: skipWithoutSqlite },
  (t) => {
    const handle = openSqlite(t, createDatabasePath(t))
    handle.exec('BEGIN; CREATE TABLE t (x)')
    assert.throws(() => sqliteStore(handle), /plants\.db: cannot start a transaction within a transaction$/)
    handle.exec('ROLLBACK')
  },
)

suite('sqliteStore rejects a handle', { skip: skipWithoutSqlite }, () => {
  for (const [name, handleOf, reason] of [
    [
      'of a temporary database',
      (t: TestContext) => openSqlite(t, ''),
      /^SQLite database :memory:: WAL mode is required, but SQLite cannot enable it for this database$/,
    ],
    [
      'of an asynchronous driver',
      (t: TestContext, path: string) => wrapStatements(openSqlite(t, path), () => ({ all: () => Promise.resolve([]) })),
      /^SQLite database handle: the driver must return rows synchronously, as node:sqlite does$/,
    ],
    [
      'of a driver that rounds integers',
      (t: TestContext, path: string) =>
        wrapStatements(openSqlite(t, path), () => ({
          setReadBigInts: undefined,
          all: () => [[2 ** 53, 'main', path]],
        })),
      /plants\.db: the driver must return integers as bigint, as node:sqlite does$/,
    ],
  ] as const) {
    test(name, (t) => {
      const handle = handleOf(t, createDatabasePath(t))
      assert.throws(() => sqliteStore(handle), { name: 'Error', message: reason })
    })
  }
})

test('sqliteStore rejects a URI that disables locks', { skip: skipWithoutFileUris }, (t) => {
  const message = /plants\.db\?nolock=1: WAL mode is required, but SQLite cannot enable it for this database$/
  assert.throws(() => sqliteStore(`file:${createDatabasePath(t)}?nolock=1`), { name: 'Error', message })
})

/**
 * Opens a store with plants of two owners. Reading ada's plants fails, because their text is malformed; reading bob's
 * plants works.
 */
async function openMalformedStore(t: TestContext, change: (statement: SqliteStatement) => object = () => ({})) {
  const handle = openSqlite(t, createDatabasePath(t))
  const store = sqliteStore(wrapStatements(handle, change))
  for (const owner of ['ada', 'bob']) await store.create(owner, createPlant(1n))
  handle.exec(`
    DROP TABLE plants;
    CREATE VIEW plants AS
      SELECT 'bob' AS owner, 1 AS id, 'plant 1' AS name, NULL AS tag
      UNION ALL SELECT 'ada', 1, json('{'), NULL`)
  return store
}

test('list() works after a failed list', { skip: skipWithoutSqlite }, async (t) => {
  const store = await openMalformedStore(t)
  for (let i = 0; i < 2; i++) {
    await assert.rejects(async () => listPlants(store), /malformed JSON$/)
    assert.deepEqual(await listPlants(store, {}, 'bob'), [createPlant(1n)])
  }
})

test('list() rejects even if the driver swallows the error, as on Deno', { skip: skipWithoutSqlite }, async (t) => {
  const store = await openMalformedStore(t, (statement) => {
    const iterate = statement.iterate.bind(statement)
    return {
      *iterate(...values: unknown[]) {
        try {
          yield* iterate(...values)
        } catch {
          // Deno ends the iteration here.
        }
      },
    }
  })
  await assert.rejects(async () => listPlants(store), /malformed JSON$/)
  assert.deepEqual(await listPlants(store, {}, 'bob'), [createPlant(1n)])
})

const TABLE = `CREATE TABLE plants (
  owner TEXT NOT NULL,
  id INTEGER NOT NULL,
  name TEXT NOT NULL,
  tag TEXT,
  PRIMARY KEY (owner, id)
) STRICT, WITHOUT ROWID`

suite(
  'sqliteStore opens a database restored from .dump, which drops the application_id',
  { skip: skipWithoutSqlite },
  () => {
    for (const [name, sql, migrate] of [
      ['without changes', '', true],
      ['with migrate: false', '', false],
      ['with statistics from ANALYZE', '; ANALYZE', true],
    ] as const) {
      test(name, async (t) => {
        const path = createDatabasePath(t)
        runSql(path, `${TABLE}; INSERT INTO plants VALUES ('ada', 1, 'plant 1', NULL) ${sql}`)
        assert.deepEqual(await listPlants(openSqliteStore(t, { migrate }, path).store), [createPlant(1n)])
        const ask = (pragma: string) =>
          openSqlite(t, path)
            .prepare(`PRAGMA ${pragma}`)
            .all()
            .map((row) => ({ ...(row as object) }))
        assert.deepEqual([ask('application_id'), ask('user_version')].flat(), [
          { application_id: 0x504c4e54 },
          { user_version: 1 },
        ])
      })
    }
  },
)

test('close() closes only connections that the store itself has opened', { skip: skipWithoutSqlite }, async (t) => {
  const path = createDatabasePath(t)
  const store = sqliteStore(path)
  const created = store.create('ada', createPlant(1n))
  await Promise.all([store.close(), store[Symbol.asyncDispose]()])
  assert.equal(await created, true)
  await assert.rejects(async () => store.ping(), /^Error: SQLite database .*plants\.db: /)

  const handle = openSqlite(t, path)
  const other = sqliteStore(handle)
  assert.deepEqual(await listStoredIds(other), [1n])
  await other.close()
  assert.equal(handle.prepare('SELECT * FROM plants').all().length, 1)
})

test('sqliteStore accepts an in-memory database', { skip: skipWithoutSqlite }, async (t) => {
  const handle = openSqlite(t, ':memory:')
  const store = sqliteStore(handle)
  assert.equal(await store.create('ada', createPlant(1n)), true)
  handle.exec('DROP TABLE plants')
  await assert.rejects(async () => store.ping(), { message: 'SQLite database :memory:: no such table: main.plants' })
})
