import assert from 'node:assert/strict'
import { suite, test, type TestContext } from 'node:test'
import {
  createPlantClient,
  PlantStoreError,
  type ListedPlant,
  type ListOptions,
  type PlantClient,
  type PlantClientOptions,
} from '../../src/client/plant-client.ts'
import { memoryStore, type Store } from '../../src/index.ts'
import { createService, getPort, serve, servePlants } from '../support/wire/service.ts'

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
    await assert.rejects(client.delete(2), { status: 404, error: 40401, ...details })
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
    ['/caf%C3%A9/a%20b', '/café/a b/'],
  ] as const) {
    test(`can end with "${path}"`, async (t) => {
      const url = `http://127.0.0.1:${getPort(await servePlants(t, { basePath }))}${path}`
      const client = createPlantClient({ url: new URL(url), token: 'ada' })
      for (const id of [1n, 2n]) await client.create({ id, name: 'Fern' })
      assert.equal((await client.listPage({ limit: 1 })).next, 1n)
      assert.deepEqual(await listIds(createPlantClient({ url, token: 'ada' })), [1n, 2n])
    })
  }

  for (const url of ['', 'plants', '/api', 'http://ada:secret@127.0.0.1/']) {
    test(`can't be "${url}"`, () => {
      assert.throws(() => createPlantClient({ url, token: 'ada' }), TypeError)
    })
  }

  test("must be set, and the error contains the option's name", () => {
    const options = { token: 'ada' } as PlantClientOptions
    const message = 'url must be an absolute URL, such as https://plants.example/'
    assert.throws(() => createPlantClient(options), new TypeError(message))
  })
})

test('a list continues past the maxLimit of the service', async (t) => {
  const store = memoryStore()
  const ids = Array.from({ length: 10 }, (_, index) => BigInt(index))
  for (const id of ids) void store.create('ada', { id, name: 'Fern' })
  const client = createPlantClient({
    url: `http://127.0.0.1:${getPort(await servePlants(t, { store, maxLimit: 3 }))}`,
    token: 'ada',
  })
  assert.deepEqual(await listIds(client), ids)
  assert.deepEqual(await listIds(client, { limit: 7 }), ids.slice(0, 7))
})

test('a list requests the next page only after all plants of the previous page have been consumed', async (t) => {
  const store = memoryStore()
  for (let id = 0n; id < 1001n; id++) void store.create('ada', { id, name: 'Fern' })
  const service = createService({ store })
  let requestCount = 0
  const server = await serve(t, (request, response) => {
    requestCount++
    service(request, response)
  })
  const list = createPlantClient({ url: `http://127.0.0.1:${getPort(server)}`, token: 'ada' }).list()
  const counts = []
  for await (const { id } of list) if ([0n, 499n, 500n].includes(id)) counts.push(requestCount)
  assert.deepEqual([...counts, requestCount], [1, 1, 2, 3])
})

suite('invalid arguments', () => {
  test('are rejected by the service', async (t) => {
    const client = createPlantClient({ url: `http://127.0.0.1:${getPort(await servePlants(t))}`, token: 'ada' })
    const invalidPlants = [{ id: 1 }, { id: 1, name: 'Fern', tag: null }, { id: 1, name: '\ud800' }] as unknown[]
    for (const plant of invalidPlants) {
      await assert.rejects(client.create(plant as { id: number; name: string }), { error: 40002 })
    }
    await assert.rejects(client.create({ id: 2n ** 63n, name: 'Fern' }), { error: 40002 })
    await assert.rejects(client.delete(2n ** 63n), { error: 40003 })
    await assert.rejects(client.listPage({ after: 2n ** 63n }), { error: 40004 })
  })

  test('are rejected without sending a request if they may have been rounded', async () => {
    const client = createPlantClient({ url: 'http://127.0.0.1', token: 'ada', fetch: () => assert.fail('a request') })
    await assert.rejects(client.create({ id: 2 ** 53, name: 'Fern' }), RangeError)
    await assert.rejects(client.delete(2 ** 53), RangeError)
    await assert.rejects(client.listPage({ after: 2 ** 53 }), RangeError)
    await assert.rejects(collect(client.list({ after: 2 ** 53 })), RangeError)
  })
})

test('a failed call rejects with an instance of PlantStoreError', async (t) => {
  const client = createPlantClient({ url: `http://127.0.0.1:${getPort(await servePlants(t))}`, token: 'ada' })
  await assert.rejects(client.delete(1), (error: unknown) => {
    assert.ok(error instanceof PlantStoreError && error instanceof Error)
    assert.equal(String(error), 'PlantStoreError: You have no plant with this id.')
    return true
  })
})
