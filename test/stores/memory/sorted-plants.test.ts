import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { EncodedPlant } from '../../../src/plants/plant.ts'
import { SortedPlants } from '../../../src/stores/memory/sorted-plants.ts'

/** Enough for hundreds of blocks. */
const MANY = 100_000

/** Puts ids in an order without pattern: the step shares no divisor with their number. */
function shuffled(ids: readonly bigint[]): bigint[] {
  return ids.map((_, i) => ids[(i * 38_197 + 1) % ids.length]!)
}

function plantsOf(ids: Iterable<bigint>): SortedPlants {
  const plants = new SortedPlants()
  for (const id of ids) assert.equal(plants.add(id, String(id)), true)
  return plants
}

function readPages(plants: SortedPlants, limit: number): bigint[] {
  const ids: bigint[] = []
  let page: readonly EncodedPlant[]
  do {
    page = plants.list({ limit, maxBytes: Infinity, after: ids.at(-1) })
    for (const { id } of page) ids.push(id)
  } while (page.length === limit)
  return ids
}

/** Far apart, so that a double would round them, and on both sides of zero. */
const ascending = Array.from({ length: MANY }, (_, i) => BigInt(i - MANY / 2) * 100_000_000_000_007n)

const orders = { ascending, descending: ascending.toReversed(), random: shuffled(ascending) }

for (const [order, ids] of Object.entries(orders)) {
  test(`lists ids that came in ${order} order`, () => {
    const plants = plantsOf(ids)
    assert.deepEqual(readPages(plants, 1000), ascending)
    const all = ascending.map((id) => new EncodedPlant(id, String(id)))
    assert.deepEqual(plants.list({ limit: MANY, maxBytes: Infinity }), all)
  })

  test(`refuses taken ids that came in ${order} order, and keeps their plants`, () => {
    const plants = plantsOf(ids)
    for (const id of ids) assert.equal(plants.add(id, 'second'), false)
    const kept = plants.list({ limit: 2, maxBytes: Infinity }).map((plant) => plant.json)
    assert.deepEqual(kept, ascending.slice(0, 2).map(String))
  })

  test(`forgets plants in ${order} order`, () => {
    const plants = plantsOf(shuffled(ascending))
    const kept = new Set(ascending)
    for (const id of ids.slice(0, -1000)) {
      assert.equal(plants.delete(id), true)
      kept.delete(id)
    }
    assert.deepEqual(readPages(plants, 100), [...kept])
    for (const id of kept) assert.equal(plants.delete(id), true)
    assert.equal(plants.isEmpty, true)
    assert.deepEqual(plants.list({ limit: 1, maxBytes: Infinity }), [])
  })
}

test('takes ids anew in the gaps that deleted runs left', () => {
  const plants = plantsOf(shuffled(ascending))
  const gaps = ascending.filter((_, i) => i % 1000 < 300)
  // From above, so that the block that turns sparse is joined with one that is nearly full.
  for (const id of gaps.toReversed()) assert.equal(plants.delete(id), true)
  for (const id of gaps) assert.equal(plants.add(id, String(id)), true)
  assert.deepEqual(readPages(plants, 1000), ascending)
})

test('takes more ids after two blocks have been joined to just the capacity of one', () => {
  const even = Array.from({ length: 256 }, (_, i) => BigInt(2 * i))
  // The last of them makes blocks of 224 and 32; the first becomes one larger, and the second too small.
  const plants = plantsOf(even)
  assert.equal(plants.add(1n, '1'), true)
  assert.equal(plants.delete(510n), true)
  for (const id of [511n, 513n, 3n]) assert.equal(plants.add(id, String(id)), true)
  assert.deepEqual(readPages(plants, 100), [0n, 1n, 2n, 3n, ...even.slice(2, -1), 511n, 513n])
})

/** So far apart that a double would round their ids. */
const SPACING = 1_000_000_000_000_007n

/** Adds or deletes many ids in a row: `count` of them, each `step` after the one before. */
const runs = fc.record({
  method: fc.constantFrom('add', 'delete'),
  first: fc.integer({ min: -1500, max: 1500 }),
  step: fc.constantFrom(1, 3, 7, -1, -3),
  count: fc.oneof(fc.nat(3), fc.nat(1000)),
})

test('does what a sorted array does, whatever runs of ids are added and deleted', () => {
  const property = fc.property(fc.array(runs, { size: 'medium' }), (history) => {
    const plants = new SortedPlants()
    const texts = new Map<bigint, string>()
    for (const [time, { method, first, step, count }] of history.entries()) {
      for (let i = 0; i < count; i++) {
        const id = BigInt(first + i * step) * SPACING
        const isKnown = texts.has(id)
        if (method === 'add') {
          assert.equal(plants.add(id, `${time}`), !isKnown)
          if (!isKnown) texts.set(id, `${time}`)
        } else {
          assert.equal(plants.delete(id), isKnown)
          texts.delete(id)
        }
      }
      const listed = plants.list({ limit: 10_000, maxBytes: Infinity })
      const [found, ids] = [listed.map(({ id }) => id), BigInt64Array.from(texts.keys()).sort()]
      assert.deepEqual(found, [...ids])
      assert.ok(listed.every(({ id, json }) => json === texts.get(id)))
      assert.deepEqual(readPages(plants, 7), [...ids])
    }
  })
  fc.assert(property, { numRuns: 50 })
})
