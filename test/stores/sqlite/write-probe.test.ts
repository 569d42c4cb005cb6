import assert from 'node:assert/strict'
import { statSync } from 'node:fs'
import { test } from 'node:test'
import { sqliteStore } from '../../../src/stores/sqlite/sqlite-store.ts'
import { newPath, open, openStore, skip } from '../../support/database/sqlite-file.ts'

const LARGE = { id: 2n, name: 'x'.repeat(100_000) }
const FULL = { name: 'StoreUnavailableError', message: /plants\.db: database or disk is full$/ }

test('writes nothing as long as no write has failed', { skip }, async (t) => {
  const { path, store } = openStore(t)
  const { size } = statSync(`${path}-wal`)
  for (let i = 0; i < 3; i++) await store.ping()
  assert.equal(statSync(`${path}-wal`).size, size)
})

test('is in trouble once a write has failed, and tries once a second until one succeeds', { skip }, async (t) => {
  const path = newPath(t)
  const handle = open(t, path)
  const store = sqliteStore(handle)
  await store.create('ada', { id: 1n, name: 'Fern' })
  let now = 5000
  t.mock.method(performance, 'now', () => now)
  handle.exec('PRAGMA max_page_count = 2')
  await assert.rejects(async () => store.create('ada', LARGE), FULL)
  await assert.rejects(async () => store.ping(), FULL)

  // That needs no room, and so says nothing of it.
  assert.equal(await store.delete('ada', 1n), true)
  handle.exec('PRAGMA max_page_count = 1000')
  now += 999
  await assert.rejects(async () => store.ping(), FULL)

  now += 1
  const { size } = statSync(`${path}-wal`)
  await store.ping()
  assert.ok(statSync(`${path}-wal`).size > size)
  assert.deepEqual(handle.prepare('SELECT * FROM plants').all(), [])
  await store.ping()
})
