import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { listPlants, type PlantSource, type ShortList } from '../../../src/plants/listing.ts'
import { shortListsOf } from '../../../src/plants/short-list.ts'
import { MAX_PAGE, MAX_PAGE_BYTES } from '../../../src/plants/store.ts'
import { memoryStore } from '../../../src/stores/memory/memory-store.ts'
import { SortedPlants } from '../../../src/stores/memory/sorted-plants.ts'
import { plantSource } from '../../support/database/plant-source.ts'

function listShort(limit: number, texts: readonly string[], after?: bigint): ShortList | undefined {
  const plants = new SortedPlants()
  for (const [index, text] of texts.entries()) assert.equal(plants.add(BigInt(index + 1), text), true)
  return plants.listShort({ limit, after })
}

const many = (count: number, text = '{}'): readonly string[] => new Array<string>(count).fill(text)

test('a list has as many plants as a page', () => {
  const body = `[${many(MAX_PAGE).join(',')}]`
  assert.deepEqual(listShort(MAX_PAGE, many(MAX_PAGE)), { body, cursor: undefined })
  assert.deepEqual(listShort(Infinity, many(MAX_PAGE)), { body, cursor: undefined })
  assert.deepEqual(listShort(MAX_PAGE, many(MAX_PAGE + 1)), { body, cursor: BigInt(MAX_PAGE) })
  assert.equal(listShort(MAX_PAGE + 1, many(MAX_PAGE + 1)), undefined)
  assert.equal(listShort(Infinity, many(MAX_PAGE + 1)), undefined)
})

test('a list begins within a block, and goes on with the next', () => {
  const texts = Array.from({ length: 1000 }, (_, index) => String(index + 1))
  assert.deepEqual(listShort(500, texts, 100n), { body: `[${texts.slice(100, 600).join(',')}]`, cursor: 600n })
})

test('a list is as long as the text of a page', () => {
  const half = MAX_PAGE_BYTES / 2
  assert.equal(listShort(2, ['x'.repeat(half), 'x'.repeat(half - 2)])?.body.length, MAX_PAGE_BYTES + 1)
  const tooLong = ['x'.repeat(half), 'x'.repeat(half - 1)]
  assert.equal(listShort(2, tooLong), undefined)
  assert.equal(listShort(3, [...tooLong, '{}']), undefined)
  assert.equal(listShort(Infinity, many(900, 'x'.repeat(200))), undefined)
})

test('a list is the one that pages of the same plants make', async () => {
  const plants = fc.uniqueArray(fc.bigInt({ min: -20n, max: 20n }), { maxLength: 30 })
  const limits = fc.oneof(fc.nat(30), fc.constantFrom(MAX_PAGE, Infinity))
  const after = fc.option(fc.bigInt({ min: -22n, max: 22n }), { nil: undefined })
  const property = fc.asyncProperty(plants, limits, after, async (ids, limit, after) => {
    const store = memoryStore()
    for (const id of ids) void store.create('ada', { id, name: String(id) })
    const source = plantSource((request) => store.list('ada', request))
    const listShort: PlantSource['listShort'] = (query) => shortListsOf(store)?.('ada', query)
    const expected = await listPlants(source, { limit, after })
    assert.deepEqual(await listPlants({ ...source, listShort }, { limit, after }), expected)
  })
  await fc.assert(property, { numRuns: 500 })
})
