import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { suite, test } from 'node:test'
import { openStore, schemeOf, STORE_URL_EXAMPLES, type StoreSettings } from '../../src/stores/open-store.ts'
import { skipWithoutSqlite } from '../support/skip-reasons.ts'
import { createTempDirectory } from '../support/temp-files.ts'

const settings = (url: string, changes: Partial<StoreSettings> = {}): StoreSettings => ({
  migrate: true,
  storeTimeoutMs: 10_000,
  postgresTable: 'public.plant_store_plants',
  postgresPoolSize: 10,
  currentUrl: () => url,
  onEvent: () => undefined,
  ...changes,
})

suite('schemeOf', () => {
  for (const [url, scheme] of [
    ['memory:', 'memory'],
    ['sqlite:a', 'sqlite'],
    ['sqlite:/a/b.db', 'sqlite'],
    ['postgres://a', 'postgres'],
    ['postgresql://ada:p@host:1/plants', 'postgres'],
    ...['', 'memory', 'memory:a', 'sqlite:', ' sqlite:a', '"sqlite:a"', 'sqlite://a', 'a:sqlite:b'].map((url) => [url]),
    ...['postgres:', 'postgres://', 'postgres:a', 'postgres:a/postgres://b', 'mysql://a'].map((url) => [url]),
  ]) {
    test(JSON.stringify(url), () => assert.equal(schemeOf(url!), scheme))
  }

  test('accepts the examples', () => {
    assert.deepEqual(STORE_URL_EXAMPLES.map(schemeOf), ['memory', 'sqlite', 'postgres'])
  })
})

test('openStore opens a memory store', async () => {
  const store = await openStore('memory:', settings('memory:'))
  assert.equal(await store.create('ada', { id: 1n, name: 'Fern' }), true)
})

test('openStore opens a SQLite file', { skip: skipWithoutSqlite }, async (t) => {
  const url = `sqlite:${join(createTempDirectory(t), 'plants.db')}`
  const store = await openStore(url, settings(url, { storeTimeoutMs: 1 }))
  t.after(() => store.close!())
  assert.equal(await store.create('ada', { id: 1n, name: 'Fern' }), true)
})

test('openStore does not create a SQLite file with migrate: false', { skip: skipWithoutSqlite }, async (t) => {
  const path = join(createTempDirectory(t), 'plants.db')
  const opened = openStore(`sqlite:${path}`, settings(path, { migrate: false }))
  await assert.rejects(opened, {
    message: `SQLite database ${path}: the file does not exist and migrations are disabled`,
  })
  assert.equal(existsSync(path), false)
})
