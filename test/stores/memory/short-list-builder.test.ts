import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { listPlants, type PlantSource } from '../../../src/plants/listing.ts'
import { shortListsOf } from '../../../src/plants/short-list.ts'
import { MAX_PAGE, MAX_PAGE_BYTES } from '../../../src/plants/store.ts'
import { memoryStore } from '../../../src/stores/memory/memory-store.ts'
import { ShortListBuilder } from '../../../src/stores/memory/short-list-builder.ts'
import { plantSource } from '../../support/database/plant-source.ts'

/** Adds as many plants as fit blocks of this size, until the builder has enough. */
function build(limit: number, texts: readonly string[], perBlock: number): ShortListBuilder {
  const builder = new ShortListBuilder(limit)
  for (let start = 0; start < texts.length; start += perBlock) {
    const block = texts.slice(start, start + perBlock)
    const ids = BigInt64Array.from(block, (_, i) => BigInt(start + i + 1))
    if (!builder.add(ids, block, 0)) break
  }
  return builder
}

const many = (count: number, text = '{}'): readonly string[] => new Array<string>(count).fill(text)

for (const perBlock of [1, 3, 1000, 5000]) {
  test(`a list of all plants has no cursor, in blocks of ${perBlock}`, () => {
    for (const limit of [5, 6, MAX_PAGE, Infinity]) {
      assert.deepEqual(build(limit, many(5), perBlock).result, { body: '[{},{},{},{},{}]', cursor: undefined })
    }
  })

  test(`a list that its limit cuts has the id of its last plant, in blocks of ${perBlock}`, () => {
    for (const count of [4, 5, 6, 7]) {
      assert.deepEqual(build(3, many(count), perBlock).result, { body: '[{},{},{}]', cursor: 3n })
    }
  })

  test(`a list has as many plants as a page, in blocks of ${perBlock}`, () => {
    const body = `[${many(MAX_PAGE).join(',')}]`
    assert.deepEqual(build(MAX_PAGE, many(MAX_PAGE), perBlock).result, { body, cursor: undefined })
    assert.deepEqual(build(Infinity, many(MAX_PAGE), perBlock).result, { body, cursor: undefined })
    assert.deepEqual(build(MAX_PAGE, many(MAX_PAGE + 1), perBlock).result, { body, cursor: BigInt(MAX_PAGE) })
    assert.equal(build(MAX_PAGE + 1, many(MAX_PAGE + 1), perBlock).result, undefined)
    assert.equal(build(Infinity, many(MAX_PAGE + 1), perBlock).result, undefined)
  })
}

test('a list of no plants is empty', () => {
  assert.deepEqual(new ShortListBuilder(1).result, { body: '[]', cursor: undefined })
})

test('a list begins in the midst of a block, and goes on with the next', () => {
  const builder = new ShortListBuilder(3)
  assert.equal(builder.add(BigInt64Array.of(1n, 2n, 3n), ['1', '2', '3'], 1), true)
  assert.equal(builder.add(BigInt64Array.of(4n, 5n), ['4', '5'], 0), false)
  assert.deepEqual(builder.result, { body: '[2,3,4]', cursor: 4n })
})

test('a list is as long as the text of a page', () => {
  const half = (length: number): string => 'x'.repeat(length)
  const fitting = [half(MAX_PAGE_BYTES / 2), half(MAX_PAGE_BYTES / 2 - 2)]
  assert.equal(build(2, fitting, 2).result?.body.length, MAX_PAGE_BYTES + 1)
  const tooLong = [half(MAX_PAGE_BYTES / 2), half(MAX_PAGE_BYTES / 2 - 1)]
  for (const perBlock of [1, 2]) {
    assert.equal(build(2, tooLong, perBlock).result, undefined)
    assert.equal(build(3, [...tooLong, '{}'], perBlock).result, undefined)
  }
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
