import assert from 'node:assert/strict'
import { execFileSync, spawnSync } from 'node:child_process'
import fs from 'node:fs'
import { dirname } from 'node:path'
import process from 'node:process'
import { suite, test, type TestContext } from 'node:test'
import { TEXT_NAMES } from '../../src/plants/plant.ts'
import { COLUMNS } from '../../src/stores/rows.ts'
import { MIGRATIONS, openDatabaseFile } from '../../src/stores/sqlite/database-file.ts'
import { sqliteStore } from '../../src/stores/sqlite/sqlite-store.ts'
import { skipWithoutSqlite } from '../support/skip-reasons.ts'
import { createDatabasePath, listIds, openDatabase, openSqliteStore, runSql } from '../support/sqlite-file.ts'

const openWith = (path: string, migrations = MIGRATIONS, migrate = true) =>
  openDatabaseFile(path, { busyTimeoutMs: 1000, migrate }, ({ database }) => database, migrations)

const FILES = ['', '-wal', '-shm', '-journal']

/** Creates a database file whose only plant is still in the WAL, as after a kill. */
async function createFileWithWal(t: TestContext): Promise<string> {
  const { path, store } = openSqliteStore(t)
  await store.create('ada', { id: 1n, name: 'Fern' })
  const copy = createDatabasePath(t)
  for (const suffix of ['', '-wal']) fs.copyFileSync(path + suffix, copy + suffix)
  return copy
}

/** Creates a plant database whose table is replaced by the given SQL. */
function createVariant(t: TestContext, sql: string): string {
  const path = createDatabasePath(t)
  openWith(path).close()
  runSql(path, `PRAGMA journal_mode = DELETE; DROP TABLE plants; ${sql}`)
  return path
}

/** Requires that opening the file fails with this message, and that it leaves all files unchanged. */
function assertRejected(path: string, message: string | RegExp, options = {}): void {
  const readFiles = (): unknown[] =>
    FILES.map((suffix) => fs.existsSync(path + suffix) && fs.readFileSync(path + suffix))
  const before = readFiles()
  const expected = typeof message === 'string' ? `SQLite database ${path}: ${message}` : message
  assert.throws(() => sqliteStore(path, options), { name: 'Error', message: expected })
  assert.deepEqual(readFiles(), before)
}

suite('opening a SQLite file', { skip: skipWithoutSqlite }, () => {
  test('creates it with mode 600, and its WAL too', async (t) => {
    const umask = process.umask(0)
    t.after(() => process.umask(umask))
    const { path, store } = openSqliteStore(t)
    await store.create('ada', { id: 1n, name: 'Fern' })
    const modes = ['', '-wal', '-shm'].map((suffix) => fs.statSync(path + suffix).mode & 0o777)
    assert.deepEqual(modes, [0o600, 0o600, 0o600])
  })

  test('recovers the plants from its WAL', async (t) => {
    assert.deepEqual(await listIds(openSqliteStore(t, {}, await createFileWithWal(t)).store), [1n])
  })

  test('accepts an empty file', async (t) => {
    const path = createDatabasePath(t)
    fs.writeFileSync(path, '')
    assert.deepEqual(await listIds(openSqliteStore(t, {}, path).store), [])
  })

  suite('rejects a WAL that SQLite would delete', () => {
    const message = 'the file is missing or empty, but its WAL (-wal), which SQLite would delete, can contain plants'
    test('because the file is missing', async (t) => {
      const path = await createFileWithWal(t)
      fs.rmSync(path)
      assertRejected(path, message)
    })

    test('because the file is empty', async (t) => {
      const path = await createFileWithWal(t)
      fs.writeFileSync(path, '')
      assertRejected(path, message)
    })

    test('because the file that a symbolic link points to is empty', async (t) => {
      const path = await createFileWithWal(t)
      fs.writeFileSync(path, '')
      fs.symlinkSync(path, `${path}.link`)
      assertRejected(`${path}.link`, message)
      assert.ok(fs.existsSync(`${path}-wal`))
    })
  })

  suite('rejects a path that looks like a mistake:', () => {
    for (const path of [
      '',
      ' plants.db',
      'plants.db\r',
      'plants.db ',
      'a\tb.db',
      'sqlite:a.db',
      'file:a.db',
      ':memory:',
    ]) {
      test(JSON.stringify(path), () => {
        const message = `the SQLite path ${JSON.stringify(path)} looks like a mistake; use a path such as "plants.db"`
        assert.throws(() => sqliteStore(path), new TypeError(message))
      })
    }
    test('undefined', () => assert.throws(() => sqliteStore(undefined as unknown as string), TypeError))
  })

  suite('with migrate: false, rejects', () => {
    test('a missing file', (t) => {
      assertRejected(createDatabasePath(t), 'the file does not exist and migrations are disabled', { migrate: false })
    })

    test('an empty file', (t) => {
      const path = createDatabasePath(t)
      fs.writeFileSync(path, '')
      assertRejected(path, 'the database is empty, and migrations are disabled', { migrate: false })
    })
  })

  suite('rejects, and leaves unchanged,', () => {
    test('a database of another application', (t) => {
      const path = createDatabasePath(t)
      runSql(path, 'CREATE TABLE plants (name TEXT)')
      assertRejected(path, 'not a plant-store database; it was left unchanged')
    })

    test('an empty database with the ID of another application', (t) => {
      const path = createDatabasePath(t)
      runSql(path, 'PRAGMA application_id = 1')
      assertRejected(path, 'not a plant-store database; it was left unchanged')
    })

    test('a file that is not a database', (t) => {
      const path = createDatabasePath(t)
      fs.writeFileSync(path, 'x'.repeat(10_000))
      assertRejected(path, 'file is not a database')
    })

    test('a FIFO', (t) => {
      const path = createDatabasePath(t)
      execFileSync('mkfifo', [path])
      assert.throws(() => sqliteStore(path), { message: `SQLite database ${path}: not a regular file` })
    })

    test('a directory', (t) => {
      const path = dirname(createDatabasePath(t))
      assert.throws(() => sqliteStore(path), { message: `SQLite database ${path}: not a regular file` })
    })
  })

  suite('rejects a table', () => {
    const key = 'PRIMARY KEY (owner, id)'
    const columns = ['owner TEXT NOT NULL', 'id INTEGER NOT NULL', ...TEXT_NAMES.map((name) => `${name} TEXT`)].join(
      ', ',
    )
    const noKey = 'ON CONFLICT clause does not match any PRIMARY KEY or UNIQUE constraint'
    for (const [name, sql, problem] of [
      ['that is missing', '', 'no such table: plants'],
      ['without a key', `CREATE TABLE plants (${columns})`, noKey],
      [
        'with a partial key',
        `CREATE TABLE plants (${columns}); CREATE UNIQUE INDEX key ON plants (owner, id) WHERE id > 0`,
        noKey,
      ],
      ['with a key of the id only', `CREATE TABLE plants (${columns.replace('id INTEGER', '$& PRIMARY KEY')})`, noKey],
      [
        'with another collation',
        `CREATE TABLE plants (${columns.replace('TEXT', '$& COLLATE NOCASE')}, ${key})`,
        noKey,
      ],
      [
        'without a column',
        `CREATE TABLE plants (${columns.replace(', tag TEXT', '')}, ${key})`,
        'table plants has no column named tag',
      ],
      [
        'with a generated column',
        `CREATE TABLE plants (${columns.replace('tag TEXT', "$& AS ('x')")}, ${key})`,
        'cannot INSERT into generated column "tag"',
      ],
    ] as const) {
      test(name, (t) => {
        const path = createVariant(t, sql)
        const hint = `the table plants needs the columns ${COLUMNS} and the key (owner, id)`
        const message = `SQLite database ${path}: ${problem}; ${hint}`
        assert.throws(() => sqliteStore(path), { name: 'Error', message })
      })
    }
  })

  test('works with more columns and indexes', async (t) => {
    const { path, store } = openSqliteStore(t)
    runSql(path, 'ALTER TABLE plants ADD COLUMN planted TEXT; CREATE INDEX names ON plants (name)')
    assert.equal(await store.create('ada', { id: 1n, name: 'Fern' }), true)
    assert.deepEqual(await listIds(openSqliteStore(t, {}, path).store), [1n])
  })

  test('works in several processes at the same time', (t) => {
    const path = createDatabasePath(t)
    const code = `
      import { sqliteStore } from './src/stores/sqlite/sqlite-store.ts'
      const store = sqliteStore(${JSON.stringify(path)})
      await store.create('ada', { id: BigInt(process.pid), name: 'Fern' })
      await store.close()`
    const node = [process.execPath, ...process.execArgv, '--input-type=module'].map((word) => `'${word}'`).join(' ')
    const script = `for i in 1 2 3 4 5 6; do ${node} --eval "$0" & done; wait`
    const { stderr } = spawnSync('sh', ['-c', script, code], {
      encoding: 'utf8',
      env: { ...process.env, NODE_NO_WARNINGS: '1' },
    })
    assert.equal(stderr, '')
    assert.equal(openDatabase(t, path).prepare('SELECT count(*) AS count FROM plants').get()!['count'], 6)
  })
})

suite('schema changes', { skip: skipWithoutSqlite }, () => {
  const NEXT = [...MIGRATIONS, 'ALTER TABLE plants ADD COLUMN planted TEXT']

  test('a later version adds a column while an older process runs, which an older version can also open', async (t) => {
    const { path, store: older } = openSqliteStore(t)
    await older.create('ada', { id: 1n, name: 'Fern' })
    openWith(path, NEXT).close()
    openWith(path, NEXT).close()
    runSql(path, "INSERT INTO plants (owner, id, name, planted) VALUES ('ada', 2, 'Aloe', '2026')")

    older.ping()
    assert.equal(await older.create('ada', { id: 2n, name: 'Aloe' }), false)
    assert.equal(await older.create('ada', { id: 3n, name: 'Aloe' }), true)
    assert.deepEqual(await listIds(older), [1n, 2n, 3n])
    assert.deepEqual(await listIds(openSqliteStore(t, {}, path).store), [1n, 2n, 3n])
    const { user_version: version } = openDatabase(t, path).prepare('PRAGMA user_version').get()!
    assert.equal(version, NEXT.length)
  })

  test('a file that lacks a column is rejected with migrate: false', (t) => {
    const { path } = openSqliteStore(t)
    const message = `SQLite database ${path}: its schema version is ${MIGRATIONS.length}, not ${NEXT.length}, and migrations are disabled`
    assert.throws(() => openWith(path, NEXT, false), { name: 'Error', message })
  })
})

const NOBODY = 65_534
const canChangeUser = process.getuid?.() === 0

suite(
  'a user without permissions gets the name of the file',
  { skip: skipWithoutSqlite || (!canChangeUser && 'needs root') },
  () => {
    /** Returns the error of another user who opens the file. */
    function openAsNobody(path: string): string {
      const code = `
      import { sqliteStore } from './src/stores/sqlite/sqlite-store.ts'
      process.setgid(${NOBODY})
      process.setuid(${NOBODY})
      try { sqliteStore(process.argv[1]); console.log('opened') } catch (error) { console.log(error.name, error.message) }`
      const args = [...process.execArgv, '--input-type=module', '--eval', code, path]
      return spawnSync(process.execPath, args, { encoding: 'utf8' }).stdout.trim()
    }

    for (const [name, modes, problem] of [
      [
        'a read-only file',
        { '': 0o644, '-wal': 0o666, '-shm': 0o666 },
        /: attempt to write a readonly database; EACCES: .* access '.*plants\.db'$/,
      ],
      [
        'an unreadable file',
        { '': 0o600, '-wal': 0o666, '-shm': 0o666 },
        /: unable to open database file; EACCES: .* access '.*plants\.db'$/,
      ],
      ['a WAL of another user', { '': 0o666, '-wal': 0o600, '-shm': 0o666 }, /EACCES: .* access '.*plants\.db-wal'$/],
    ] as const) {
      test(name, async (t) => {
        const path = await createFileWithWal(t)
        fs.chmodSync(dirname(path), 0o777)
        fs.writeFileSync(`${path}-shm`, '')
        for (const [suffix, mode] of Object.entries(modes)) fs.chmodSync(path + suffix, mode)
        assert.match(openAsNobody(path), /^Error SQLite database /)
        assert.match(openAsNobody(path), problem)
      })
    }

    test('a directory without write permission', (t) => {
      const path = createDatabasePath(t)
      fs.chmodSync(dirname(path), 0o755)
      assert.match(
        openAsNobody(path),
        /^Error SQLite database .*plants\.db: EACCES: permission denied, open '.*plants\.db'/,
      )
    })
  },
)
