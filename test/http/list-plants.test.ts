import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import fc from 'fast-check'
import { MAX_PAGE_BYTES, memoryStore, type NewPlant, type PageRequest, type Store } from '../../src/index.ts'
import { createCheckedStore } from '../../src/plants/checked-store.ts'
import { listPlants, type ListQuery, type ListResult } from '../../src/plants/list-plants.ts'
import { overrideStore } from '../support/override-store.ts'
import { createPageAfter, createStoreWithPlants, EMPTY_PAGE } from '../support/plant-list.ts'

const WHOLE_LIST: ListQuery = { limit: Infinity, after: undefined, includesId: false }

function list(store: Pick<Store, 'list'>, query: Partial<ListQuery> = {}): Promise<ListResult> | ListResult {
  const checked = createCheckedStore(overrideStore(memoryStore(), store), 1000)
  return listPlants(checked, 'ada', { ...WHOLE_LIST, ...query })
}

async function readText({ body }: ListResult): Promise<string> {
  let text = ''
  for await (const part of typeof body === 'string' ? [body] : body) text += part
  return text
}

const readNames = async (result: ListResult): Promise<string[]> =>
  (JSON.parse(await readText(result)) as { name: string }[]).map(({ name }) => name)

suite('a list with a limit', () => {
  test('is at most one store page of 1,000 plants, with a cursor', async () => {
    const result = await list(createStoreWithPlants(2500), { limit: 2000 })
    assert.equal(typeof result.body, 'string')
    assert.deepEqual([(await readNames(result)).length, result.cursor], [1000, 1000n])
  })

  test('ends early if the texts of the page exceed 128 KiB', async () => {
    const result = await list(createStoreWithPlants(10, 'x'.repeat(MAX_PAGE_BYTES / 4)), { limit: 10 })
    assert.deepEqual([(await readNames(result)).length, result.cursor], [4, 4n])
  })

  for (const count of [0, 1, 3]) {
    test(`of ${count} plants has the size of its body, if the store knows the sizes of its plants`, async () => {
      const result = await list(createStoreWithPlants(count, 'ż'), { limit: 3 })
      assert.equal(result.bytes, Buffer.byteLength(await readText(result)))
    })
  }

  test('leaves its size out if it contains ids, or copies of plants, which can have other names', async () => {
    const [plant] = (await createStoreWithPlants(1, 'Fern').list('ada', { limit: 1, maxBytes: 1 })).plants
    const page = { plants: [plant!, { ...plant!, id: 2n, name: 'Oak' }], hasMore: false }
    const result = await list({ list: () => page }, { limit: 3 })
    assert.deepEqual([result.bytes, await readText(result)], [undefined, '[{"name":"Fern"},{"name":"Oak"}]'])
    assert.equal((await list(createStoreWithPlants(1), { limit: 3, includesId: true })).bytes, undefined)
  })

  test('does not call the store if the limit is 0', async () => {
    const store = { list: () => assert.fail('list was called') }
    assert.deepEqual(await list(store, { limit: 0 }), { body: '[]', cursor: undefined })
  })
})

suite('a list without a limit', () => {
  for (const includesId of [false, true]) {
    test(`contains all plants of all pages (includesId: ${includesId})`, async () => {
      const plants = Array.from({ length: 2500 }, (_, n) => ({
        ...(includesId && { id: n + 1 }),
        name: `Fern ${n + 1}`,
      }))
      const text = await readText(await list(createStoreWithPlants(2500), { includesId }))
      assert.deepEqual(JSON.parse(text), plants)
    })
  }

  test('ends with an empty page, even if that page announces more', async () => {
    const requests: PageRequest[] = []
    const result = await list({
      list: (_, request) =>
        requests.push(request) === 1 ? createPageAfter(0n, { limit: 2 }) : { ...EMPTY_PAGE, hasMore: true },
    })
    assert.equal(await readText(result), '[{"name":"Fern"},{"name":"Fern"}]')
    assert.deepEqual(
      requests.map(({ after }) => after),
      [undefined, 2n],
    )
  })

  test('is empty if the first page is empty, even if that page announces more', async () => {
    assert.equal(await readText(await list({ list: () => ({ plants: [], hasMore: true }) })), '[]')
  })

  test('lets other events happen between two pages', async () => {
    let ticks = 0
    let reads = 0
    const timer = setInterval(() => ticks++, 0)
    const store = { list: (_: string, { after = 0n }) => (++reads < 50 ? createPageAfter(after) : EMPTY_PAGE) }
    await readText(await list(store))
    clearInterval(timer)
    assert.ok(ticks > 5, `${ticks} ticks in ${reads} pages`)
  })

  test('rejects with the error of a later page', async () => {
    const fault = new Error('disk')
    const store = { list: (_: string, { after }: PageRequest) => (after ? Promise.reject(fault) : createPageAfter()) }
    await assert.rejects(async () => readText(await list(store)), fault)
  })
})

const ids = fc.nat(40)
/** The changes that are made before each page is read. */
const changes = fc.array(fc.array(fc.record({ id: ids, isCreated: fc.boolean() }), { maxLength: 5 }), { maxLength: 40 })
/** The limits of consecutive lists. */
const limits = fc.array(fc.oneof(fc.integer({ min: 1, max: 15 }), fc.constant(1000), fc.constant(undefined)), {
  minLength: 1,
})

/** Some plants are so large that one or a few of them fill a page. */
function createPlant(id: number): NewPlant {
  return { id: BigInt(id), name: String(id), tag: 'x'.repeat([0, 30_000, 70_000, 140_000][id % 4]!) }
}

test('consecutive lists return each permanent plant exactly once while other plants are created and deleted', async () => {
  const property = fc.asyncProperty(fc.uniqueArray(ids), changes, limits, async (first, changes, limits) => {
    const store = memoryStore()
    for (const id of first) void store.create('ada', createPlant(id))
    const [everThere, throughout] = [new Set(first), new Set(first)]
    const remaining = changes.values()
    const changing: Pick<Store, 'list'> = {
      list(owner, request) {
        for (const { id, isCreated } of remaining.next().value ?? []) {
          void (isCreated ? store.create('ada', createPlant(id)) : store.delete('ada', BigInt(id)))
          if (isCreated) everThere.add(id)
          else throughout.delete(id)
        }
        return store.list(owner, request)
      },
    }
    const listed: number[] = []
    let after: bigint | undefined
    for (let n = 0; n === 0 || after !== undefined; n++) {
      const result = await list(changing, { limit: limits[n % limits.length]!, after })
      listed.push(...(await readNames(result)).map(Number))
      after = result.cursor
    }
    assert.deepEqual(
      listed,
      [...new Set(listed)].sort((a, b) => a - b),
    )
    assert.ok(listed.every((id) => everThere.has(id)))
    assert.ok([...throughout].every((id) => listed.includes(id)))
  })
  await fc.assert(property, { numRuns: 100 })
})
