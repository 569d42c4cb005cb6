import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { MIN_INT64 } from '../../src/plants/int64.ts'
import type { EncodedPage } from '../../src/plants/encoded-list.ts'
import { encodeFields } from '../../src/plants/plant.ts'
import { SortedPlants } from '../../src/stores/sorted-plants.ts'

function readAllIds(plants: SortedPlants, limit: number): bigint[] {
  const ids: bigint[] = []
  let page: EncodedPage
  do {
    page = plants.list({ limit, maxBytes: Infinity, after: ids.at(-1) })
    for (const { id } of page.plants) ids.push(id)
  } while (page.hasMore)
  return ids
}

/** Makes ids so large that a double would round them. */
const SPACING = 10_000_000_000_007n

/** Adds or deletes many ids in a row: `count` of them, each `step` after the one before. */
const runs = fc.record({
  method: fc.constantFrom('add', 'delete'),
  first: fc.integer({ min: -1500, max: 1500 }),
  step: fc.constantFrom(1, 3, 7, -1, -3),
  count: fc.oneof(fc.nat(3), fc.nat(1000)),
})

test('SortedPlants behaves like a sorted map for any sequence of adds and deletes', () => {
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
      const listed = plants.list({ limit: 10_000, maxBytes: Infinity }).plants
      const [found, ids] = [listed.map(({ id }) => id), BigInt64Array.from(texts.keys()).sort()]
      assert.deepEqual(found, [...ids])
      assert.ok(listed.every((plant) => encodeFields(plant) === texts.get(plant.id)))
      assert.deepEqual(readAllIds(plants, 7), [...ids])
    }
    assert.deepEqual([plants.add(MIN_INT64, ''), readAllIds(plants, 1000)[0]], [true, MIN_INT64])
  })
  fc.assert(property, { numRuns: 50 })
})
