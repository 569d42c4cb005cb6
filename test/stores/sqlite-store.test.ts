import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { renameSync, rmSync } from 'node:fs'
import { dirname } from 'node:path'
import process from 'node:process'
import { after, suite, test } from 'node:test'
import { storeConformance } from '../../src/conformance/store-conformance.ts'
import { type Store } from '../../src/plants/store.ts'
import { sqliteStore } from '../../src/stores/sqlite/sqlite-store.ts'
import { skipWithoutSqlite } from '../support/skip-reasons.ts'
import {
  createDatabasePath,
  listIds,
  openDatabase,
  openSqliteStore,
  runInOtherProcess,
  runSql,
} from '../support/sqlite-file.ts'

const LOCKED = { code: 'PLANT_STORE_UNAVAILABLE', isOutcomeUnknown: false, message: /database is locked$/ }

suite('SQLite', { skip: skipWithoutSqlite }, () => {
  const paths = new Map<Store, string>()
  let unlock: () => Promise<void>
  storeConformance({
    test,
    create() {
      const path = createDatabasePath({ after })
      const store = sqliteStore(path, { busyTimeoutMs: 20 })
      paths.set(store, path)
      return store
    },
    breakWrites: async (store) => (unlock = await runInOtherProcess({ after }, paths.get(store)!, 'BEGIN IMMEDIATE')),
    restore: () => unlock(),
  })

  test('uses WAL mode, and syncs each commit', (t) => {
    const { path } = openSqliteStore(t)
    assert.equal(openDatabase(t, path).prepare('PRAGMA journal_mode').get()!['journal_mode'], 'wal')
  })

  test('commits the writes of a tick together', async (t) => {
    const { path, store } = openSqliteStore(t)
    const reader = openDatabase(t, path)
    const readVersion = () => reader.prepare('PRAGMA data_version').get()!['data_version'] as number
    const before = readVersion()
    let commits = 0
    let seen = before
    const calls = Array.from({ length: 200 }, async (_, i) => {
      await store.create('ada', { id: BigInt(i), name: 'Fern' })
      if (readVersion() !== seen) commits++
      seen = readVersion()
    })
    await Promise.all(calls)
    assert.equal(commits, 1)
  })

  test('reports duplicates in the same commit', async (t) => {
    const { store } = openSqliteStore(t)
    const create = (id: bigint) => store.create('ada', { id, name: 'Fern' })
    const results = await Promise.all([create(1n), create(1n), store.delete('ada', 1n), create(1n), create(2n)])
    assert.deepEqual(results, [true, false, true, true, true])
  })

  test('a write that a constraint rejects fails alone, and is never reported as a duplicate', async (t) => {
    const { path, store } = openSqliteStore(t)
    runSql(path, "CREATE UNIQUE INDEX names ON plants (name) WHERE name <> 'Fern'")
    const create = (id: bigint, name: string) => store.create('ada', { id, name })
    const results = await Promise.allSettled([create(1n, 'Aloe'), create(2n, 'Aloe'), create(3n, 'Fern')])
    assert.deepEqual(
      results.map(({ status }) => status),
      ['fulfilled', 'rejected', 'fulfilled'],
    )
    assert.match(String((results[1] as PromiseRejectedResult).reason), /^Error: SQLite database .* UNIQUE constraint/)
    assert.deepEqual(await listIds(store), [1n, 3n])
  })

  test('splits a long queue into several commits', async (t) => {
    const { store } = openSqliteStore(t)
    const calls = Array.from({ length: 1000 }, async (_, i) => store.create('ada', { id: BigInt(i), name: 'Fern' }))
    assert.ok((await Promise.all(calls)).every((isNew) => isNew))
  })

  test('shares a file with another process', async (t) => {
    const { path, store } = openSqliteStore(t)
    await store.create('ada', { id: 1n, name: 'Fern' })
    await runInOtherProcess(t, path, "INSERT INTO plants (owner, id, name) VALUES ('ada', 2, 'Aloe')")
    assert.equal(await store.create('ada', { id: 2n, name: 'Fern' }), false)
    assert.deepEqual(await listIds(store), [1n, 2n])
  })

  test('writes fail with 50300 while another process holds the lock, and lists work', async (t) => {
    const { path, store } = openSqliteStore(t, { busyTimeoutMs: 10 })
    const unlock = await runInOtherProcess(t, path, 'BEGIN IMMEDIATE')
    await assert.rejects(store.create('ada', { id: 1n, name: 'Fern' }) as Promise<boolean>, LOCKED)
    assert.throws(() => store.ping(), LOCKED)
    assert.throws(() => sqliteStore(path, { busyTimeoutMs: 10 }), LOCKED)
    assert.deepEqual(await listIds(store), [])
    await unlock()
    store.ping()
    assert.equal(await store.create('ada', { id: 1n, name: 'Fern' }), true)
  })

  test('a write waits up to busyTimeoutMs for the lock', async (t) => {
    const { path, store } = openSqliteStore(t)
    const script = `
      const database = new (process.getBuiltinModule('node:sqlite').DatabaseSync)(process.argv[1])
      database.exec('BEGIN IMMEDIATE')
      process.stdout.write('locked')
      setTimeout(() => database.close(), 200)`
    const { spawn } = await import('node:child_process')
    const child = spawn(process.execPath, ['-e', script, path], { stdio: ['ignore', 'pipe', 'inherit'] })
    await new Promise((resolve) => child.stdout.once('data', resolve))
    assert.equal(await store.create('ada', { id: 1n, name: 'Fern' }), true)
  })

  suite('ping fails while the path does not refer to the open file:', () => {
    for (const [name, spoil, repair] of [
      ['moved', (path: string) => renameSync(path, `${path}.old`), (path: string) => renameSync(`${path}.old`, path)],
      ['deleted', (path: string) => rmSync(path), undefined],
      ['in a directory that vanished', (path: string) => rmSync(dirname(path), { recursive: true }), undefined],
      [
        'replaced',
        (path: string) => {
          renameSync(path, `${path}.old`)
          runSql(path, 'CREATE TABLE plants (a)')
        },
        undefined,
      ],
    ] as const) {
      test(name, (t) => {
        const { path, store } = openSqliteStore(t)
        store.ping()
        spoil(path)
        const message = `SQLite database ${path}: the file was moved, deleted or replaced`
        assert.throws(() => store.ping(), { code: 'PLANT_STORE_UNAVAILABLE', message })
        repair?.(path)
        if (repair !== undefined) store.ping()
      })
    }
  })

  test('ping fails if the table is gone', (t) => {
    const { path, store } = openSqliteStore(t)
    runSql(path, 'DROP TABLE plants')
    assert.throws(() => store.ping(), /no such table: plants$/)
  })

  test('close waits for the queued writes, and then calls fail', async (t) => {
    const { path, store } = openSqliteStore(t)
    const created = store.create('ada', { id: 1n, name: 'Fern' })
    await store.close()
    assert.equal(await created, true)
    await assert.rejects(store.create('ada', { id: 2n, name: 'Fern' }) as Promise<boolean>, /finalized|not open/)
    assert.deepEqual(await listIds(openSqliteStore(t, {}, path).store), [1n])
  })

  test('a list of large plants ends each page at maxBytes', async (t) => {
    const { store } = openSqliteStore(t)
    const name = 'x'.repeat(60_000)
    await Promise.all(Array.from({ length: 50 }, async (_, i) => store.create('ada', { id: BigInt(i), name })))
    const { plants, hasMore } = await store.list('ada', { limit: 1000, maxBytes: 131_072 })
    assert.deepEqual([plants.length, hasMore], [3, true])
  })
})

test('a Node without node:sqlite can import plant-store/sqlite, and gets a clear error', () => {
  const flags = skipWithoutSqlite === false ? ['--no-experimental-sqlite'] : []
  const code = `import { sqliteStore } from './src/stores/sqlite/sqlite-store.ts'
    try { sqliteStore('plants.db') } catch (error) { console.log(error.message) }`
  const args = [...flags, ...process.execArgv, '--input-type=module', '--eval', code]
  const { stdout } = spawnSync(process.execPath, args, { encoding: 'utf8' })
  assert.equal(stdout, 'SQLite needs Node 22.13 or later\n')
})

test('an invalid busyTimeoutMs is a TypeError', () => {
  for (const busyTimeoutMs of [-1, 0.5, 1001, '5'] as number[]) {
    assert.throws(() => sqliteStore('plants.db', { busyTimeoutMs }), TypeError)
  }
})
