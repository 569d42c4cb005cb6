import '../../support/fakeable-timers.ts'
import assert from 'node:assert/strict'
import { copyFileSync, existsSync, mkdirSync, renameSync, rmSync, statSync, symlinkSync, truncateSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import process from 'node:process'
import { suite, test, type TestContext } from 'node:test'
import { pathToFileURL } from 'node:url'
import { metricsOf } from '../../../src/stores/store-metrics.ts'
import { sqliteStore, type SqliteHandle } from '../../../src/stores/sqlite/sqlite-store.ts'
import { listStoredIds } from '../../support/wire/service.ts'
import {
  createDatabasePath,
  openSqlite,
  runInOtherProcess,
  skipWithoutSqlite,
  skipWithoutFileUris,
} from '../../support/database/sqlite-file.ts'

const MOVED_MESSAGE =
  'the database file, its WAL (-wal) or shared memory (-shm) was moved, deleted or replaced; the store is unavailable'

/** Opens a store that contains a plant, and records its warnings. */
async function openStoreWithPlant(t: TestContext, path = createDatabasePath(t), source: string | SqliteHandle = path) {
  const warnings: string[] = []
  const store = sqliteStore(source, { onWarning: (message) => warnings.push(message) })
  t.after(() => store.close())
  await store.create('ada', { id: 1n, name: 'Monstera' })
  return { path, store, warnings }
}

/** Checks that every operation fails as unavailable. */
async function assertUnavailable({ path, store }: Awaited<ReturnType<typeof openStoreWithPlant>>) {
  const message = `SQLite database ${path}: ${MOVED_MESSAGE}`
  const error = { name: 'StoreUnavailableError', message, isOutcomeUnknown: false }
  const creates = [2n, 3n].map(async (id) => store.create('ada', { id, name: 'Fern' }))
  for (const create of creates) await assert.rejects(create, error)
  await assert.rejects(async () => store.delete('ada', 1n), error)
  await assert.rejects(async () => listStoredIds(store), error)
  await assert.rejects(async () => store.ping(), error)
}

suite('the store rejects all operations if its file has changed', { skip: skipWithoutSqlite }, () => {
  for (const [name, takeAway] of [
    ['the file was moved away', (path: string) => renameSync(path, `${path}.old`)],
    ['the file was removed', (path: string) => rmSync(path)],
    ['the WAL was removed', (path: string) => rmSync(`${path}-wal`)],
    ['the shared memory was removed', (path: string) => rmSync(`${path}-shm`)],
    [
      'another file has replaced the file',
      (path: string) => {
        copyFileSync(`${path}-wal`, `${path}.new`)
        renameSync(`${path}.new`, path)
      },
    ],
  ] as const) {
    test(`after ${name}`, async (t) => {
      const opened = await openStoreWithPlant(t)
      takeAway(opened.path)
      await assertUnavailable(opened)
      assert.deepEqual(opened.warnings, [`SQLite database ${opened.path}: ${MOVED_MESSAGE}`])
    })
  }

  test(
    'the store rejects all operations on a moved file that was opened with a handle or a URI',
    { skip: skipWithoutFileUris },
    async (t) => {
      for (const sourceOf of [(path: string) => openSqlite(t, path), (path: string) => pathToFileURL(path).href]) {
        const path = createDatabasePath(t)
        const opened = await openStoreWithPlant(t, path, sourceOf(path))
        renameSync(path, `${path}.old`)
        await assertUnavailable(opened)
      }
    },
  )

  test('the store rejects all operations after a symbolic link is pointed at another file', async (t) => {
    const path = createDatabasePath(t)
    const link = join(dirname(path), 'link.db')
    symlinkSync(path, link)
    const opened = await openStoreWithPlant(t, link)
    rmSync(link)
    symlinkSync(`${path}-wal`, link)
    await assertUnavailable(opened)
  })
})

test(
  'the store keeps its connection open after another process has created a new shared-memory file',
  { skip: skipWithoutSqlite },
  async (t) => {
    const opened = await openStoreWithPlant(t)
    const { path, store } = opened
    rmSync(`${path}-shm`)
    const end = await runInOtherProcess(t, path, "INSERT INTO plants VALUES ('ada', 2, 'Fern', NULL)")
    await end()
    await store.close()
    // Check a copy, because this process still uses the removed shared memory for the file itself.
    for (const part of ['', '-wal']) copyFileSync(path + part, `${path}.copy${part}`)
    assert.deepEqual(await listStoredIds((await openStoreWithPlant(t, `${path}.copy`)).store), [1n, 2n])
    await assertUnavailable(opened)
  },
)

test('list() checks the file at most ten times per second', { skip: skipWithoutSqlite }, async (t) => {
  const { path, store } = await openStoreWithPlant(t)
  let now = 5000
  t.mock.method(performance, 'now', () => now)
  assert.deepEqual(await listStoredIds(store), [1n])
  renameSync(path, `${path}.old`)
  now += 99
  assert.deepEqual(await listStoredIds(store), [1n])
  now += 1
  await assert.rejects(listStoredIds(store), { name: 'StoreUnavailableError' })
})

test(
  'the store accepts a connection that uses exclusive locking mode instead of shared memory',
  { skip: skipWithoutSqlite },
  async (t) => {
    const path = createDatabasePath(t)
    const handle = openSqlite(t, path)
    handle.exec('PRAGMA locking_mode = EXCLUSIVE')
    const { store } = await openStoreWithPlant(t, path, handle)
    assert.equal(existsSync(`${path}-shm`), false)
    await store.ping()
  },
)

test(
  'the store finds a file by its relative path even after the working directory changes',
  { skip: skipWithoutSqlite },
  async (t) => {
    const path = createDatabasePath(t)
    const before = process.cwd()
    t.after(() => process.chdir(before))
    process.chdir(dirname(path))
    const { store } = await openStoreWithPlant(t, basename(path))
    mkdirSync('elsewhere')
    process.chdir('elsewhere')
    await store.ping()
  },
)

test('the store exposes the WAL size as a gauge', { skip: skipWithoutSqlite }, async (t) => {
  const { path, store } = await openStoreWithPlant(t)
  await store.ping()
  const seen = metricsOf(store).gauges.map(([name, , read]) => [name, read()])
  assert.deepEqual(seen, [['plant_store_sqlite_log_bytes', statSync(`${path}-wal`).size]])
  assert.equal(metricsOf((await openStoreWithPlant(t, ':memory:')).store).gauges[0]![2](), 0)
})

test(
  'the store warns when the WAL reaches 64 MiB and each time its size doubles',
  { skip: skipWithoutSqlite },
  async (t) => {
    const path = createDatabasePath(t)
    const handle = openSqlite(t, path)
    const { store, warnings } = await openStoreWithPlant(t, path, handle)
    // Discards the warning about the permissions of the file, which come from the umask.
    warnings.length = 0
    for (const mebibytes of [63, 64, 127, 128, 600, 1000, 63, 64]) {
      truncateSync(`${path}-wal`, mebibytes * 2 ** 20)
      await store.ping()
    }
    const sizes = warnings.map(
      (message) => /^SQLite database .*plants\.db: the WAL \(-wal\) has (\d+) MiB of plants; /.exec(message)?.[1],
    )
    assert.deepEqual(sizes, ['64', '128', '600', '64'])
  },
)
