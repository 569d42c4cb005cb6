import assert from 'node:assert/strict'
import { test } from 'node:test'
import { queryObjects } from 'node:v8'
import { MAX_PAGE_BYTES, type Page, type Store } from '../../src/plants/store.ts'
import { storeConformance } from '../../src/conformance/store-conformance.ts'
import { memoryStore } from '../../src/stores/memory-store.ts'
import { assertExactPages } from '../support/database/exact-pages.ts'
import { measureMemoryUsed } from '../support/memory-usage.ts'

storeConformance({ test, name: 'memory', create: memoryStore })

test('the memory store ends each page exactly at limit or maxBytes', () => assertExactPages(memoryStore(), 300))

function readPage(store: Store, owner: string): Page {
  return store.list(owner, { limit: 1000, maxBytes: MAX_PAGE_BYTES }) as Page
}

test('the memory store returns results synchronously', () => {
  const store = memoryStore()
  assert.equal(store.create('demo', { id: 1n, name: 'Fern' }), true)
  assert.equal(readPage(store, 'demo').plants.length, 1)
  assert.equal(store.delete('demo', 1n), true)
})

test('the memory store returns plants that can be spread and cloned', () => {
  const store = memoryStore()
  void store.create('demo', { id: 1n, name: 'Fern', tag: 'green' })
  void store.create('demo', { id: 2n, name: 'Żółta "paproć"' })
  const { plants } = readPage(store, 'demo')
  const expected = [
    { id: 1n, name: 'Fern', tag: 'green' },
    { id: 2n, name: 'Żółta "paproć"' },
  ]
  assert.deepEqual(plants, expected)
  assert.deepEqual(structuredClone(plants), expected)
  assert.deepEqual({ ...plants[0] }, expected[0])
  assert.deepEqual(Object.keys(plants[0]!), ['id', 'name', 'tag'])
})

test('the memory store remains usable after disposal', async () => {
  const store = memoryStore()
  await store[Symbol.asyncDispose]()
  assert.equal(store.create('demo', { id: 1n, name: 'Fern' }), true)
})

for (const [order, first, step, most] of [
  ['ascending', 0, 1, 500],
  ['descending', 99_999, -1, 900],
] as const) {
  test(`the memory store uses at most ${most} blocks for 100,000 ${order} ids`, () => {
    const before = countBlocks()
    const store = memoryStore()
    const ids = Array.from({ length: 100_000 }, (_, i) => BigInt(first + i * step))
    for (const id of ids) void store.create('demo', { id, name: 'Fern' })
    const count = countBlocks() - before
    assert.ok(count <= most, `${count} blocks`)
    for (const id of ids.slice(0, 99_000)) void store.delete('demo', id)
    // The first block always remains, and one other block may be half empty.
    assert.ok(countBlocks() - before <= most / 50 + 2)
    assert.equal(readPage(store, 'demo').plants.length, 1000)
  })
}

test('the memory store uses at most 120 bytes of memory per plant', async () => {
  const before = await measureMemoryUsed()
  const store = memoryStore()
  for (let i = 0; i < 100_000; i++) {
    void store.create('demo', { id: BigInt(i), name: `Monstera deliciosa ${i}`, tag: 'tropical' })
  }
  const full = (await measureMemoryUsed()) - before
  assert.ok(full < 100_000 * 120, `100,000 plants take ${full} bytes`)

  for (let i = 0; i < 100_000; i++) if (i % 50 !== 0) void store.delete('demo', BigInt(i))
  const sparse = (await measureMemoryUsed()) - before
  assert.ok(sparse < 2000 * 500, `the remaining 2,000 plants take ${sparse} bytes`)
  assert.equal(readPage(store, 'demo').plants.length, 1000)
})

test('the memory store uses less than 2.5 kB of memory for an owner with ten plants', async () => {
  const before = await measureMemoryUsed()
  const store = memoryStore()
  for (let i = 0; i < 100_000; i++) void store.create(`owner ${i % 10_000}`, { id: BigInt(i), name: 'Fern' })
  const full = (await measureMemoryUsed()) - before
  assert.ok(full < 10_000 * 2500, `10,000 owners take ${full} bytes`)

  for (let i = 0; i < 100_000; i++) void store.delete(`owner ${i % 10_000}`, BigInt(i))
  const left = (await measureMemoryUsed()) - before
  assert.ok(left < 10_000 * 100, `10,000 owners leave ${left} bytes`)
  assert.deepEqual(readPage(store, 'owner 1'), { plants: [], hasMore: false })
})

/** Returns the number of blocks in all stores of this process. Each block has one array of ids. */
function countBlocks(): number {
  return queryObjects(BigInt64Array) as number
}
