import '../../support/fakeable-timers.ts'
import assert from 'node:assert/strict'
import { statSync } from 'node:fs'
import { test, type TestContext } from 'node:test'
import { metricsOf } from '../../../src/stores/store-metrics.ts'
import { sqliteStore } from '../../../src/stores/sqlite/sqlite-store.ts'
import {
  createDatabasePath,
  openSqlite,
  openSqliteStore,
  skipWithoutSqlite,
} from '../../support/database/sqlite-file.ts'

const createPlant = (id: bigint) => ({ id, name: 'Monstera' })

/** Opens an in-memory store, and records the number of writes in each committed transaction. */
function openInMemory(t: TestContext, maxBatch?: number) {
  const { store } = openSqliteStore(t, { maxBatch }, ':memory:')
  const sizes: number[] = []
  metricsOf(store).onBatch = (size) => sizes.push(size)
  return { store, sizes }
}

test('the write queue commits one batch per event-loop tick', { skip: skipWithoutSqlite }, async (t) => {
  const { store, sizes } = openInMemory(t, 2)
  for (const id of [1n, 2n, 3n, 4n, 5n]) void store.create('ada', createPlant(id))
  for (let turn = 0; turn < 4; turn++) await new Promise(setImmediate)
  assert.deepEqual(sizes, [2, 2, 1])
})

test('the write queue limits a batch of large plants to about a megabyte', { skip: skipWithoutSqlite }, async (t) => {
  const { store, sizes } = openInMemory(t)
  const large = { name: 'x'.repeat(300_000), tag: 'y'.repeat(100_000) }
  const ids = [1n, 2n, 3n, 4n, 5n, 6n, 7n]
  await Promise.all(ids.map(async (id) => store.create('ada', { id, ...large })))
  await Promise.all(ids.map(async (id) => store.delete('ada', id)))
  assert.deepEqual(sizes, [3, 3, 1, 7])
})

const LARGE_PLANT = { id: 2n, name: 'x'.repeat(100_000) }
const DISK_FULL_ERROR = { name: 'StoreUnavailableError', message: /plants\.db: database or disk is full$/ }

test('ping() writes nothing if no write has failed', { skip: skipWithoutSqlite }, async (t) => {
  const { path, store } = openSqliteStore(t)
  const { size } = statSync(`${path}-wal`)
  for (let i = 0; i < 3; i++) await store.ping()
  assert.equal(statSync(`${path}-wal`).size, size)
})

test('ping() succeeds if the table has an additional column', { skip: skipWithoutSqlite }, async (t) => {
  const { path, store } = openSqliteStore(t)
  openSqlite(t, path).exec('ALTER TABLE plants ADD COLUMN planted TEXT')
  assert.equal(await store.create('ada', createPlant(1n)), true)
  await store.ping()
})

test('ping() fails if a column is missing', { skip: skipWithoutSqlite }, async (t) => {
  const { path, store } = openSqliteStore(t)
  openSqlite(t, path).exec('ALTER TABLE plants RENAME COLUMN tag TO label')
  await assert.rejects(async () => store.ping(), /plants has no column named tag$/)
})

test('ping() retries a failed write probe after one second', { skip: skipWithoutSqlite }, async (t) => {
  const path = createDatabasePath(t)
  const handle = openSqlite(t, path)
  const store = sqliteStore(handle)
  await store.create('ada', { id: 1n, name: 'Fern' })
  let now = 5000
  t.mock.method(performance, 'now', () => now)
  handle.exec('PRAGMA max_page_count = 2')
  await assert.rejects(async () => store.create('ada', LARGE_PLANT), DISK_FULL_ERROR)
  await assert.rejects(async () => store.ping(), DISK_FULL_ERROR)

  // A delete needs no disk space, so its success proves nothing.
  assert.equal(await store.delete('ada', 1n), true)
  handle.exec('PRAGMA max_page_count = 1000')
  now += 999
  await assert.rejects(async () => store.ping(), DISK_FULL_ERROR)

  now += 1
  const { size } = statSync(`${path}-wal`)
  await store.ping()
  assert.ok(statSync(`${path}-wal`).size > size)
  assert.deepEqual(handle.prepare('SELECT * FROM plants').all(), [])
  await store.ping()
})

test(
  'the next write also commits queued writes whose retry timer was dropped by a timer mock',
  { skip: skipWithoutSqlite },
  async (t) => {
    const { path, store } = openSqliteStore(t)
    const handle = openSqlite(t, path)
    let now = 5000
    t.mock.method(performance, 'now', () => now)
    handle.exec('BEGIN IMMEDIATE')
    t.mock.timers.enable({ apis: ['setTimeout'] })
    const first = store.create('ada', createPlant(1n))
    await new Promise(setImmediate)
    t.mock.timers.reset()
    handle.exec('ROLLBACK')
    now += 6
    assert.deepEqual(await Promise.all([first, store.create('ada', createPlant(2n))]), [true, true])
  },
)

test('close() waits for the last write even while timers are mocked', { skip: skipWithoutSqlite }, async (t) => {
  const { store } = openSqliteStore(t)
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const written = store.create('ada', createPlant(1n))
  await store.close()
  assert.equal(await written, true)
})
