import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { EncodedPlant } from '../../../src/plants/plant.ts'
import { PlantTree } from '../../../src/stores/memory/plant-tree.ts'

/** Enough for three levels of blocks. */
const MANY = 100_000

/** Puts ids in an order without pattern: the step shares no divisor with their number. */
function shuffled(ids: readonly bigint[]): bigint[] {
  return ids.map((_, i) => ids[(i * 38_197 + 1) % ids.length]!)
}

function treeOf(ids: Iterable<bigint>): PlantTree {
  const tree = new PlantTree()
  for (const id of ids) assert.equal(tree.add(id, String(id)), true)
  return tree
}

function readPages(tree: PlantTree, limit: number): bigint[] {
  const ids: bigint[] = []
  let page: readonly EncodedPlant[]
  do {
    page = tree.list({ limit, maxBytes: Infinity, after: ids.at(-1) })
    for (const plant of page) ids.push(plant.id)
  } while (page.length === limit)
  return ids
}

/** Far apart, so that a double would round them, and on both sides of zero. */
const ascending = Array.from({ length: MANY }, (_, i) => BigInt(i - MANY / 2) * 100_000_000_000_007n)

const orders = [
  { order: 'ascending', ids: ascending },
  { order: 'descending', ids: ascending.toReversed() },
  { order: 'random', ids: shuffled(ascending) },
]

for (const { order, ids } of orders) {
  test(`lists ids that came in ${order} order`, () => {
    const tree = treeOf(ids)
    assert.deepEqual(readPages(tree, 1000), ascending)
    assert.deepEqual(
      tree.list({ limit: MANY, maxBytes: Infinity }),
      ascending.map((id) => new EncodedPlant(id, String(id))),
    )
  })

  test(`refuses taken ids that came in ${order} order, and keeps their plants`, () => {
    const tree = treeOf(ids)
    for (const id of ids) assert.equal(tree.add(id, 'second'), false)
    assert.deepEqual(
      tree.list({ limit: 2, maxBytes: Infinity }).map((plant) => plant.json),
      ascending.slice(0, 2).map(String),
    )
  })

  test(`forgets plants in ${order} order`, () => {
    const tree = treeOf(shuffled(ascending))
    const kept = new Set(ascending)
    for (const id of ids.slice(0, -1000)) {
      assert.equal(tree.delete(id), true)
      kept.delete(id)
    }
    assert.deepEqual(readPages(tree, 100), [...kept])
    for (const id of kept) assert.equal(tree.delete(id), true)
    assert.equal(tree.isEmpty, true)
    assert.deepEqual(tree.list({ limit: 1, maxBytes: Infinity }), [])
  })
}

test('takes ids anew in the gaps that deleted runs left', () => {
  const tree = treeOf(shuffled(ascending))
  const gaps = ascending.filter((_, i) => i % 1000 < 300)
  // From above, so that the block that turns sparse is joined with one that is nearly full.
  for (const id of gaps.toReversed()) assert.equal(tree.delete(id), true)
  for (const id of gaps) assert.equal(tree.add(id, String(id)), true)
  assert.deepEqual(readPages(tree, 1000), ascending)
})

test('takes more ids after two blocks have been joined to just the capacity of one', () => {
  const even = Array.from({ length: 256 }, (_, i) => BigInt(2 * i))
  // The last of them makes blocks of 224 and 32; the first becomes one larger, and the second too small.
  const tree = treeOf(even)
  assert.equal(tree.add(1n, '1'), true)
  assert.equal(tree.delete(510n), true)
  for (const id of [511n, 513n, 3n]) assert.equal(tree.add(id, String(id)), true)
  assert.deepEqual(readPages(tree, 100), [0n, 1n, 2n, 3n, ...even.slice(2, -1), 511n, 513n])
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
    const tree = new PlantTree()
    const texts = new Map<bigint, string>()
    for (const [time, { method, first, step, count }] of history.entries()) {
      for (let i = 0; i < count; i++) {
        const id = BigInt(first + i * step) * SPACING
        const isKnown = texts.has(id)
        if (method === 'add') {
          assert.equal(tree.add(id, `${time}`), !isKnown)
          if (!isKnown) texts.set(id, `${time}`)
        } else {
          assert.equal(tree.delete(id), isKnown)
          texts.delete(id)
        }
      }
      const plants = tree.list({ limit: 10_000, maxBytes: Infinity })
      const ids = BigInt64Array.from(texts.keys()).sort()
      assert.deepEqual(
        BigInt64Array.from(plants, ({ id }) => id),
        ids,
      )
      assert.ok(plants.every(({ id, json }) => json === texts.get(id)))
      assert.deepEqual(readPages(tree, 7), [...ids])
    }
  })
  fc.assert(property, { numRuns: 50 })
})
