import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { memoryStore, type Store } from '../../src/index.ts'

const COUNT = 100_000
/** A prime that is larger than COUNT: multiples of a generator visit every number in a scattered order. */
const PRIME = 100_003

const ORDERS: Readonly<Record<string, (n: number) => number>> = {
  ascending: (n) => n,
  descending: (n) => COUNT - n,
  scattered: (n) => (n * 5_741) % PRIME,
}

async function listIds(store: Store): Promise<number[]> {
  const ids: number[] = []
  for (let after: bigint | undefined, hasMore = true; hasMore;) {
    const page = await store.list('ada', { limit: 1000, maxBytes: Infinity, after })
    ids.push(...page.plants.map(({ id }) => Number(id)))
    after = page.plants.at(-1)?.id
    hasMore = page.hasMore
  }
  return ids
}

suite('the memory store with 100,000 plants of one owner', () => {
  for (const [name, createId] of Object.entries(ORDERS)) {
    test(`lists them in ascending order if they were created in ${name} order`, async () => {
      const store = memoryStore()
      const ids = Array.from({ length: COUNT }, (_, n) => createId(n))
      for (const id of ids) assert.equal(store.create('ada', { id: BigInt(id), name: '' }), true)
      assert.deepEqual(
        await listIds(store),
        ids.sort((a, b) => a - b),
      )
    })
  }

  test('moves few of them for a plant with the lowest id', (t) => {
    const store = memoryStore()
    for (let id = 1; id < COUNT; id++) void store.create('ada', { id: BigInt(id), name: '' })
    const { splice } = Array.prototype
    t.after(() => (Array.prototype.splice = splice))
    const lengths: number[] = []
    Array.prototype.splice = function (this: unknown[], ...args: Parameters<typeof splice>) {
      lengths.push(this.length)
      return splice.apply(this, args)
    }
    void store.create('ada', { id: 0n, name: '' })
    // In a single sorted array, it would move all of them, which takes longer than a request.
    assert.ok(lengths.length > 0 && Math.max(...lengths) < 1000, `spliced arrays of ${lengths.join(', ')} plants`)
  })

  test('keeps the plants that remain when others are deleted and created again', async () => {
    const store = memoryStore()
    for (let id = 0; id < COUNT; id++) void store.create('ada', { id: BigInt(id), name: '' })
    for (let id = 0; id < COUNT; id++) {
      if (id % 1000 !== 0) assert.equal(store.delete('ada', BigInt(id)), true)
      else assert.equal(store.create('ada', { id: BigInt(id), name: '' }), false)
    }
    assert.deepEqual(
      await listIds(store),
      Array.from({ length: COUNT / 1000 }, (_, n) => n * 1000),
    )
    for (let id = 0; id < COUNT; id += 1000) assert.equal(store.delete('ada', BigInt(id)), true)
    assert.deepEqual(await listIds(store), [])
    assert.equal(store.create('ada', { id: 1n, name: '' }), true)
  })
})

for (const [name, maxBytes, expected, tag] of [
  ['the names and tags amount to maxBytes', 8, 2, 'ab'],
  ['one byte more fits', 9, 3, 'ab'],
  ['the names of plants without tags amount to maxBytes', 4, 2],
] as const) {
  test(`a page ends once ${name} in UTF-8`, async () => {
    const store = memoryStore()
    for (let id = 1n; id <= 4n; id++) void store.create('ada', { id, name: 'ż', tag })
    const { plants, hasMore } = await store.list('ada', { limit: 1000, maxBytes })
    assert.deepEqual([plants.length, hasMore], [expected, true])
  })
}
