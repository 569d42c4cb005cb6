import assert from 'node:assert/strict'
import { test } from 'node:test'
import { EncodedPlant } from '../../../src/plants/plant.ts'
import { PlantTree } from '../../../src/stores/memory/plant-tree.ts'
import { createRandom } from '../../support/random.ts'

/** Enough for three levels of blocks. */
const MANY = 100_000

function shuffled(ids: readonly bigint[]): bigint[] {
  const random = createRandom(1)
  return ids
    .map((id) => ({ id, place: random(2 ** 32) }))
    .sort((a, b) => a.place - b.place)
    .map(({ id }) => id)
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

test('does what a sorted array does, through 30,000 seeded operations', () => {
  const random = createRandom(42)
  const tree = new PlantTree()
  const ids: bigint[] = []
  const texts = new Map<bigint, string>()

  for (let step = 0; step < 30_000; step++) {
    // Phases in which most operations add, and phases in which most delete.
    const adding = random(10) < (Math.floor(step / 3000) % 2 === 0 ? 8 : 2)
    const id = (BigInt(random(3000)) - 1500n) * 6_000_000_000_000_000n
    const index = ids.findIndex((other) => other >= id)
    const at = index === -1 ? ids.length : index
    const known = ids[at] === id

    if (adding) {
      assert.equal(tree.add(id, `step ${step}`), !known, `step ${step}: add ${id}`)
      if (!known) {
        ids.splice(at, 0, id)
        texts.set(id, `step ${step}`)
      }
    } else {
      assert.equal(tree.delete(id), known, `step ${step}: delete ${id}`)
      if (known) ids.splice(at, 1)
    }

    const expected = ids.slice(ids[at] === id ? at + 1 : at).slice(0, 5)
    const page = tree.list({ limit: 5, maxBytes: Infinity, after: id })
    assert.deepEqual(
      page.map((plant) => plant.id),
      expected,
      `step ${step}: list after ${id}`,
    )
    assert.deepEqual(
      page.map((plant) => plant.json),
      expected.map((other) => texts.get(other)),
    )
    assert.equal(tree.isEmpty, ids.length === 0)
  }
  assert.deepEqual(readPages(tree, 7), ids)
})
