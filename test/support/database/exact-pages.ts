import assert from 'node:assert/strict'
import type { test as registerTest } from 'node:test'
import type { NewPlant } from '../../../src/plants/plant.ts'
import type { PageRequest, Store } from '../../../src/plants/store.ts'
import { AWKWARD_TEXTS } from '../../../src/conformance/awkward-values.ts'

/** Texts of many lengths, large ones among small ones, in characters of which JSON makes something else. */
const TEXTS: readonly string[] = [
  ...AWKWARD_TEXTS,
  'x'.repeat(1023),
  'x'.repeat(1024),
  '楓'.repeat(400),
  '\n'.repeat(2000),
  '"\\'.repeat(700),
  '\u0001'.repeat(5000),
  'u'.repeat(60_000),
  '{"name":"","tag":""}',
]

const PLANTS: readonly NewPlant[] = TEXTS.flatMap((text, i) => [
  { id: BigInt(4 * i), name: text },
  { id: BigInt(4 * i + 1), name: 'fern', tag: text },
  { id: BigInt(4 * i + 2), name: text, tag: text },
  { id: BigInt(4 * i + 3), name: 'fern', tag: '' },
])

/** Registers a test that says whether a store stops at `maxBytes` exactly, as those do that are ours. */
export function exactPages(test: typeof registerTest, create: () => Store | Promise<Store>): void {
  test('ends a page right after the plant with which it comes to maxBytes', async () => {
    const store = await create()
    for (const plant of PLANTS) assert.equal(await store.create('ann', plant), true)
    for (const limit of [1, 10, 1000]) {
      for (const maxBytes of [1, 2, 20, 1000, 1023, 1024, 1025, 4000, 131_072, 2 ** 30]) {
        for (let start = 0; start <= PLANTS.length; start += 11) {
          const after = PLANTS[start - 1]?.id
          const found = await store.list('ann', { limit, maxBytes, after })
          assert.deepEqual(
            found.map(({ id, name, tag }) => (tag === undefined ? { id, name } : { id, name, tag })),
            exactPage(PLANTS.slice(start), { limit, maxBytes }),
            `limit ${limit}, maxBytes ${maxBytes}, after ${after}`,
          )
        }
      }
    }
    await store.close?.()
  })
}

function exactPage(plants: readonly NewPlant[], { limit, maxBytes }: PageRequest): readonly NewPlant[] {
  let bytes = 0
  const end = plants.findIndex(({ name, tag = '' }) => (bytes += Buffer.byteLength(name + tag)) >= maxBytes)
  return plants.slice(0, end === -1 ? limit : Math.min(limit, end + 1))
}
