import assert from 'node:assert/strict'
import { test } from 'node:test'
import { queryObjects } from 'node:v8'
import { MAX_PAGE_BYTES, type Store } from '../../src/plants/store.ts'
import { storeConformance } from '../../src/conformance/store-conformance.ts'
import { memoryStore } from '../../src/stores/memory-store.ts'
import { exactPages } from '../support/database/exact-pages.ts'
import { memoryUsed } from '../support/heap.ts'

storeConformance({ test, create: memoryStore })
exactPages(test, memoryStore)

test('answers without a promise', () => {
  const store = memoryStore()
  assert.equal(store.create('demo', { id: 1n, name: 'Fern' }), true)
  assert.ok(Array.isArray(store.list('demo', { limit: 1, maxBytes: MAX_PAGE_BYTES })))
  assert.equal(store.delete('demo', 1n), true)
})

test('has hardly more blocks to walk over after 100,000 deletes from the front than without them', () => {
  const before = blockCount()
  const small = storeOf(1000)
  const expected = blockCount() - before
  const emptied = storeOf(101_000)
  assert.ok(blockCount() - before > 50 * expected)
  for (let i = 0; i < 100_000; i++) assert.equal(emptied.delete('demo', BigInt(i)), true)

  // The first block stays, and another one may be half empty.
  assert.ok(blockCount() - before <= 2 * expected + 2)
  for (const store of [small, emptied]) {
    assert.equal((store.list('demo', { limit: 1000, maxBytes: MAX_PAGE_BYTES }) as unknown[]).length, 1000)
  }
})

for (const [order, first, step, most] of [
  ['ascend', 0, 1, 500],
  ['descend', 99_999, -1, 900],
] as const) {
  test(`has at most ${most} blocks for 100,000 ids that ${order}`, () => {
    const before = blockCount()
    const store = memoryStore()
    for (let i = 0; i < 100_000; i++) void store.create('demo', { id: BigInt(first + i * step), name: 'Fern' })
    const count = blockCount() - before
    assert.ok(count <= most, `${count} blocks`)
    assert.equal((store.list('demo', { limit: 1000, maxBytes: MAX_PAGE_BYTES }) as unknown[]).length, 1000)
  })
}

test('takes at most 120 bytes a plant, and gives them back', async () => {
  const before = await memoryUsed()
  const store = storeOf(100_000)
  const full = (await memoryUsed()) - before
  assert.ok(full < 100_000 * 120, `100,000 plants take ${full} bytes`)

  for (let i = 0; i < 100_000; i++) if (i % 50 !== 0) assert.equal(store.delete('demo', BigInt(i)), true)
  const sparse = (await memoryUsed()) - before
  assert.ok(sparse < 2000 * 500, `2,000 plants of them take ${sparse} bytes`)
  assert.equal((store.list('demo', { limit: 1000, maxBytes: MAX_PAGE_BYTES }) as unknown[]).length, 1000)
})

test('takes less than 2.5 KB for an owner with ten plants', async () => {
  const before = await memoryUsed()
  const store = memoryStore()
  for (let i = 0; i < 10_000; i++) {
    assert.equal(store.create(`owner ${i % 1000}`, { id: BigInt(i), name: 'Fern' }), true)
  }
  const full = (await memoryUsed()) - before
  assert.ok(full < 1000 * 2500, `1,000 owners take ${full} bytes`)
})

test('keeps nothing of an owner whose last plant is deleted', async () => {
  const store = memoryStore()
  const before = await memoryUsed()
  for (let i = 0; i < 20_000; i++) assert.equal(store.create(`owner ${i}`, { id: 1n, name: 'Fern' }), true)
  for (let i = 0; i < 20_000; i++) assert.equal(store.delete(`owner ${i}`, 1n), true)
  const left = (await memoryUsed()) - before
  assert.ok(left < 20_000 * 100, `20,000 owners leave ${left} bytes`)
  assert.deepEqual(store.list('owner 1', { limit: 1, maxBytes: MAX_PAGE_BYTES }), [])
})

function storeOf(count: number): Store {
  const store = memoryStore()
  for (let i = 0; i < count; i++) {
    const plant = { id: BigInt(i), name: `Monstera deliciosa ${i}`, tag: 'tropical' }
    assert.equal(store.create('demo', plant), true)
  }
  return store
}

/** How many blocks of ids there are, in all stores of this process. */
function blockCount(): number {
  return queryObjects(BigInt64Array) as number
}
