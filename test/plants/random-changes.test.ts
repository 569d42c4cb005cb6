import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { memoryStore, type NewPlant, type PageRequest } from '../../src/index.ts'
import { listPlants } from '../../src/plants/list-plants.ts'
import { createPlantList } from '../support/database/plant-list.ts'

const ids = fc.nat(40)

/** The changes that are made before each page is read. */
const changes = fc.array(fc.array(fc.record({ id: ids, isCreated: fc.boolean() }), { maxLength: 5 }), { maxLength: 40 })

/** The limits of consecutive lists. */
const limits = fc.array(fc.oneof(fc.integer({ min: 1, max: 15 }), fc.constant(1000), fc.constant(Infinity)), {
  minLength: 1,
})

/** Some plants are so large that one or a few of them fill a page. */
function createPlant(id: number): NewPlant {
  return { id: BigInt(id), name: String(id), tag: 'x'.repeat([0, 30_000, 70_000, 140_000][id % 4]!) }
}

async function readIds(body: string | AsyncIterable<string>): Promise<number[]> {
  let text = ''
  for await (const piece of typeof body === 'string' ? [body] : body) text += piece
  return (JSON.parse(text) as { name: string }[]).map(({ name }) => Number(name))
}

test('consecutive lists return each permanent plant exactly once while other plants are created and deleted', async () => {
  const property = fc.asyncProperty(fc.uniqueArray(ids), changes, limits, async (first, changes, limits) => {
    const store = memoryStore()
    for (const id of first) void store.create('ada', createPlant(id))
    const [everThere, throughout] = [new Set(first), new Set(first)]
    const toCome = changes.values()
    const readPage = (request: PageRequest): ReturnType<typeof store.list> => {
      for (const { id, isCreated } of toCome.next().value ?? []) {
        void (isCreated ? store.create('ada', createPlant(id)) : store.delete('ada', BigInt(id)))
        if (isCreated) everThere.add(id)
        else throughout.delete(id)
      }
      return store.list('ada', request)
    }
    const listed: number[] = []
    let after: bigint | undefined
    for (let list = 0; list === 0 || after !== undefined; list++) {
      const limit = limits[list % limits.length]!
      const { body, cursor } = await listPlants(createPlantList(readPage, { limit, after }))
      const found = await readIds(body)
      assert.ok(found.length <= limit)
      listed.push(...found)
      after = cursor
    }
    const ascending = [...new Set(listed)].sort((a, b) => a - b)
    assert.deepEqual(listed, ascending)
    assert.ok(listed.every((id) => everThere.has(id)))
    assert.ok([...throughout].every((id) => listed.includes(id)))
  })
  await fc.assert(property, { numRuns: 200 })
})
