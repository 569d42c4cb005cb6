import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { MAX_PAGE_BYTES, type Store } from '../../../src/plants/store.ts'
import { storeConformance } from '../../../src/conformance/store-conformance.ts'
import { memoryStore } from '../../../src/stores/memory/memory-store.ts'
import { exactPages } from '../../support/exact-pages.ts'

storeConformance({ test, create: memoryStore })
exactPages(test, memoryStore)

test('answers without a promise', () => {
  const store = memoryStore()
  assert.equal(store.create('demo', { id: 1n, name: 'Fern' }), true)
  assert.ok(Array.isArray(store.list('demo', { limit: 1, maxBytes: MAX_PAGE_BYTES })))
  assert.equal(store.delete('demo', 1n), true)
})

test('lists as fast after 100,000 deletes from the front as without them', () => {
  const small = storeOf(1000)
  const emptied = storeOf(101_000)
  for (let i = 0; i < 100_000; i++) assert.equal(emptied.delete('demo', BigInt(i)), true)

  timeOfPages(small)
  const expected = timeOfPages(small)
  const actual = timeOfPages(emptied)
  // Walking over the deleted would take a thousand times as long; the margin is for a busy machine.
  assert.ok(actual < 20 * expected, `${actual} µs against ${expected} µs`)
})

test('takes at most 120 bytes a plant, and gives them back', () => {
  const before = usedMemory()
  const store = storeOf(100_000)
  const full = usedMemory() - before
  assert.ok(full < 100_000 * 120, `100,000 plants take ${full} bytes`)

  for (let i = 0; i < 100_000; i++) if (i % 50 !== 0) assert.equal(store.delete('demo', BigInt(i)), true)
  const sparse = usedMemory() - before
  assert.ok(sparse < 2000 * 500, `2,000 plants of them take ${sparse} bytes`)
  assert.equal((store.list('demo', { limit: 1000, maxBytes: MAX_PAGE_BYTES }) as unknown[]).length, 1000)
})

test('keeps nothing of an owner whose last plant is deleted', () => {
  const store = memoryStore()
  const before = usedMemory()
  for (let i = 0; i < 20_000; i++) assert.equal(store.create(`owner ${i}`, { id: 1n, name: 'Fern' }), true)
  for (let i = 0; i < 20_000; i++) assert.equal(store.delete(`owner ${i}`, 1n), true)
  const left = usedMemory() - before
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

/** Processor time of 3,000 pages, in microseconds. */
function timeOfPages(store: Store): number {
  const before = process.cpuUsage()
  for (let i = 0; i < 3000; i++) void store.list('demo', { limit: 10, maxBytes: MAX_PAGE_BYTES })
  return process.cpuUsage(before).user
}

function usedMemory(): number {
  setFlagsFromString('--expose-gc')
  const collectGarbage = runInNewContext('gc') as () => void
  // What one collection frees of typed arrays, it counts as used until the next.
  collectGarbage()
  collectGarbage()
  const { heapUsed, arrayBuffers } = process.memoryUsage()
  return heapUsed + arrayBuffers
}
