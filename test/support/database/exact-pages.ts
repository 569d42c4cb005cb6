import assert from 'node:assert/strict'
import fc from 'fast-check'
import type { NewPlant, Store } from '../../../src/index.ts'

/** Texts with lengths around the limit at which the Postgres store uses another statement. */
const names = fc.oneof(
  fc.string({ unit: fc.constantFrom('x', '楓', '\n', '"', '\u0001'), maxLength: 40 }),
  fc.constantFrom(1023, 1024, 5000).map((length) => 'x'.repeat(length)),
)
const plants = fc.array(fc.record({ name: names, tag: fc.option(names, { nil: undefined }) }), { maxLength: 12 })
const requests = fc.record({ limit: fc.integer({ min: 1, max: 13 }), maxBytes: fc.integer({ min: 1, max: 12_000 }) })

/** Checks that each page of a store ends exactly at its limits, and that `hasMore` is exact. */
export async function assertExactPages(store: Store, numRuns: number): Promise<void> {
  let ownerCount = 0
  const property = fc.asyncProperty(plants, requests, async (texts, request) => {
    const owner = `exact pages ${ownerCount++}`
    const allPlants: NewPlant[] = texts.map((text, i) => ({ ...text, id: BigInt(i) }))
    await Promise.all(allPlants.map(async (plant) => store.create(owner, plant)))
    for (let start = 0; ;) {
      let [end, bytes] = [start, 0]
      for (; end < allPlants.length && end < start + request.limit && bytes < request.maxBytes; end++) {
        const { name, tag = '' } = allPlants[end]!
        bytes += Buffer.byteLength(name + tag)
      }
      const page = await store.list(owner, { ...request, after: start === 0 ? undefined : BigInt(start - 1) })
      const hasMore = end < allPlants.length
      assert.deepEqual([page.plants.map(({ id }) => Number(id)), page.hasMore], [range(start, end), hasMore])
      if (!hasMore) return
      start = end
    }
  })
  await fc.assert(property, { numRuns })
}

function range(start: number, end: number): number[] {
  return Array.from({ length: end - start }, (_, i) => start + i)
}
