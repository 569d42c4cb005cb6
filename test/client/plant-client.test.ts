import assert from 'node:assert/strict'
import { suite, test, type TestContext } from 'node:test'
import {
  createPlantClient,
  PlantStoreError,
  type ListedPlant,
  type ListOptions,
  type PlantClient,
} from '../../src/client/plant-client.ts'
import { memoryStore, type Store } from '../../src/index.ts'
import { getPort, servePlants } from '../support/service.ts'

async function collect(plants: AsyncIterable<ListedPlant>): Promise<ListedPlant[]> {
  const collected: ListedPlant[] = []
  for await (const plant of plants) collected.push(plant)
  return collected
}

const listIds = async (client: PlantClient, options?: ListOptions): Promise<bigint[]> =>
  (await collect(client.list(options))).map(({ id }) => id)

suite('a client', () => {
  /** Creates a client for a store. */
  async function connect(t: TestContext, store: Store = memoryStore()): Promise<PlantClient> {
    return createPlantClient({ url: `http://127.0.0.1:${getPort(await servePlants(t, { store }))}`, token: 'ada' })
  }

  test('preserves ids, names and tags exactly', async (t) => {
    const client = await connect(t)
    const plants = [
      { id: -(2n ** 63n), name: '' },
      { id: -1n, name: '{"id":1', tag: '' },
      { id: 0n, name: '"id":2,', tag: '\\u0022id\\u0022:3' },
      { id: 2n ** 53n, name: '\u{1f331}\u2028\\"' },
      { id: 2n ** 53n + 1n, name: 'Fern', tag: 'indoor' },
      { id: 2n ** 63n - 1n, name: '\n' },
    ]
    for (const plant of plants.toReversed()) await client.create(plant)
    assert.deepEqual(await collect(client.list()), plants)
    for (const { id } of plants.slice(1)) await client.delete(id)
    assert.deepEqual(await collect(client.list()), plants.slice(0, 1))
  })

  test('reports a duplicate id and a missing plant', async (t) => {
    const client = await connect(t)
    await client.create({ id: 1, name: 'Fern' })
    const details = { name: 'PlantStoreError', requestId: undefined, isOutcomeUnknown: false }
    await assert.rejects(client.create({ id: 1, name: 'Fern' }), { status: 409, error: 40900, ...details })
    const error: unknown = await client.delete(2).catch((reason: unknown) => reason)
    assert.ok(error instanceof PlantStoreError && error instanceof Error)
    assert.deepEqual([error.status, error.error, error.isOutcomeUnknown], [404, 40401, false])
    assert.equal(String(error), 'PlantStoreError: You have no plant with this id.')
  })

  test('lists plants across several pages, and respects limit and after', async (t) => {
    const store = memoryStore()
    const client = await connect(t, store)
    const ids = Array.from({ length: 1003 }, (_, index) => BigInt(index))
    for (const id of ids) void store.create('ada', { id, name: `Plant ${id}` })
    assert.deepEqual(await listIds(client), ids)
    assert.deepEqual(await listIds(client, { limit: 501 }), ids.slice(0, 501))
    assert.deepEqual(await listIds(client, { limit: 1000 }), ids.slice(0, 1000))
    assert.deepEqual(await listIds(client, { after: 2, limit: 2 }), [3n, 4n])
    assert.deepEqual(await listIds(client, { after: 1000n }), [1001n, 1002n])
    assert.deepEqual(await listIds(client, { after: 1002n }), [])
    assert.deepEqual(await listIds(client, { limit: 0 }), [])

    const page = await client.listPage({ after: 999n, limit: 2 })
    assert.deepEqual([page.plants.map(({ id }) => id), page.next], [[1000n, 1001n], 1001n])
    assert.deepEqual(await client.listPage({ after: page.next }), {
      plants: [{ id: 1002n, name: 'Plant 1002' }],
      next: undefined,
    })
    assert.equal((await client.listPage()).plants.length, 500)
    assert.ok((await client.listPage({ limit: Infinity })).plants.length >= 1000)
  })
})

suite('the URL of a client', () => {
  for (const [basePath, path] of [
    ['', ''],
    ['', '/'],
    ['/api/v1', '/api/v1'],
    ['/api/v1', '/api/v1/'],
    ['/api', '/api?key=1#top'],
  ] as const) {
    test(`can end with "${path}"`, async (t) => {
      const url = `http://127.0.0.1:${getPort(await servePlants(t, { basePath }))}${path}`
      const client = createPlantClient({ url: new URL(url), token: 'ada' })
      for (const id of [1n, 2n]) await client.create({ id, name: 'Fern' })
      assert.equal((await client.listPage({ limit: 1 })).next, 1n)
      assert.deepEqual(await listIds(createPlantClient({ url, token: 'ada' })), [1n, 2n])
    })
  }
})

test('ids that may have been rounded are rejected without sending a request', async () => {
  const client = createPlantClient({ url: 'http://127.0.0.1', token: 'ada', fetch: () => assert.fail('a request') })
  await assert.rejects(client.create({ id: 2 ** 53, name: 'Fern' }), RangeError)
  await assert.rejects(client.delete(2 ** 53), RangeError)
  await assert.rejects(client.listPage({ after: 2 ** 53 }), RangeError)
  await assert.rejects(collect(client.list({ after: 2 ** 53 })), RangeError)
})
