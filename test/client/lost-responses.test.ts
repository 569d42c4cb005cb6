import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import type { ListedPlant } from '../../src/client/plant-client.ts'
import { memoryStore, type Store } from '../../src/index.ts'
import {
  cutAfter,
  cutBefore,
  cutWithin,
  cutWithinChunks,
  hang,
  hangAfter,
  repeat,
  replaceResponse,
  respond,
  startFaultyProxy,
  type Fault,
} from '../support/faulty-proxy.ts'

const FERN = { id: 2n ** 53n + 1n, name: 'Fern', tag: 'indoor' }

/** Proxy faults, and whether each leaves the outcome of a request unknown to the client. */
const FAULTS: Readonly<Record<string, readonly [Fault, isUnknown: boolean]>> = {
  'a connection that is closed before the request': [cutBefore, true],
  'a connection that is closed after the request': [cutAfter, true],
  'a connection that is closed within the response': [cutWithin, true],
  'a request that the proxy sends twice': [repeat, true],
  'no response': [hang, true],
  'no response to a request that took effect': [hangAfter, true],
  '502 with HTML': [respond(502), true],
  '502 with HTML for a request that took effect': [replaceResponse(502), true],
  '504 with HTML': [respond(504), true],
  'error 50301': [respond(503, { error: 50301, message: 'unknown' }), true],
  'error 50301 for a request that took effect': [replaceResponse(503, { error: 50301, message: 'unknown' }), true],
  'error 50300': [respond(503, { error: 50300, message: 'unavailable' }), false],
  'error 40800': [respond(408, { error: 40800, message: 'late' }), false],
  '429 with HTML': [respond(429), false],
}

function createStore(...plants: readonly ListedPlant[]): Store {
  const store = memoryStore()
  for (const plant of plants) void store.create('ada', plant)
  return store
}

async function listStored(store: Store): Promise<readonly unknown[]> {
  return (await store.list('ada', { limit: 10, maxBytes: Infinity })).plants.map(({ id, name, tag }) => ({
    id,
    name,
    tag,
  }))
}

for (const [name, [fault, isUnknown]] of Object.entries(FAULTS)) {
  // If the proxy sends a request twice, the client's first response is the second copy's 40900 or 40401. The client
  // can't know that the first copy succeeded.
  const isRepeated = fault === repeat
  const skip = isRepeated && 'not for a proxy that sends a request twice'
  // A busy machine may need several attempts within a short timeout.
  const options = fault === hang || fault === hangAfter ? { timeoutMs: 1000, retries: 50 } : { timeoutMs: 120_000 }
  suite(`after ${name}, a client`, { concurrency: true }, () => {
    test('creates a plant once', { skip }, async (t) => {
      const store = createStore()
      const proxy = await startFaultyProxy(t, [fault], store)
      await proxy.connect(options).create(FERN)
      assert.deepEqual(await listStored(store), [FERN])
    })

    test('deletes a plant', { skip }, async (t) => {
      const store = createStore(FERN)
      const proxy = await startFaultyProxy(t, [fault], store)
      await proxy.connect(options).delete(FERN.id)
      assert.deepEqual(await listStored(store), [])
    })

    test('lists each plant once', async (t) => {
      const plants = Array.from({ length: 3 }, (_, id) => ({ id: BigInt(id), name: `Plant ${id}` }))
      const proxy = await startFaultyProxy(t, [fault], createStore(...plants))
      const listed: ListedPlant[] = []
      for await (const plant of proxy.connect(options).list()) listed.push(plant)
      assert.deepEqual(listed, plants)
    })

    test('reports that another plant already has the id', async (t) => {
      const other = { ...FERN, tag: 'outdoor' }
      const store = createStore(other)
      const proxy = await startFaultyProxy(t, [fault], store)
      const create = proxy.connect(options).create(FERN)
      await assert.rejects(create, { error: 40900, isOutcomeUnknown: isUnknown && !isRepeated })
      assert.deepEqual(await listStored(store), [other])
    })

    test(`${isUnknown && !isRepeated ? 'succeeds' : 'fails'} if the plant to delete doesn't exist`, async (t) => {
      const proxy = await startFaultyProxy(t, [fault])
      const deletion = proxy.connect(options).delete(1)
      if (isUnknown && !isRepeated) await deletion
      else await assert.rejects(deletion, { error: 40401, isOutcomeUnknown: false })
    })

    test('reports whether the outcome is unknown if retries are disabled', { skip }, async (t) => {
      const client = (await startFaultyProxy(t, [fault, fault])).connect({ ...options, retries: 0 })
      await assert.rejects(client.create(FERN), { name: 'PlantStoreError', isOutcomeUnknown: isUnknown })
      await assert.rejects(client.listPage(), { name: 'PlantStoreError', isOutcomeUnknown: false })
    })
  })
}

suite('a retried create', { concurrency: true }, () => {
  for (const [id, query] of [
    [42n, 'limit=1&after=41&include=id'],
    [-(2n ** 63n), 'limit=1&include=id'],
  ] as const) {
    test(`looks up only the existing plant (${id})`, async (t) => {
      const proxy = await startFaultyProxy(t, [cutAfter])
      await proxy.connect().create({ id, name: 'Fern' })
      assert.deepEqual(proxy.requests, ['POST /plants ada', 'POST /plants ada', `GET /plants?${query} ada`])
    })
  }

  test('retries the lookup', async (t) => {
    const proxy = await startFaultyProxy(t, [cutAfter, undefined, cutWithin])
    await proxy.connect().create(FERN)
    assert.equal(proxy.requests.length, 4)
  })

  test('reports an unknown outcome if the lookup fails', async (t) => {
    const proxy = await startFaultyProxy(t, [cutAfter, undefined, respond(403)])
    await assert.rejects(proxy.connect().create(FERN), { status: 403, error: undefined, isOutcomeUnknown: true })
  })

  test('reports an unknown outcome if the plant has been deleted since', async (t) => {
    const store = createStore({ id: FERN.id + 1n, name: 'Fern', tag: 'indoor' })
    const conflict = respond(409, { error: 40900, message: 'in use' })
    const proxy = await startFaultyProxy(t, [cutBefore, conflict], store)
    await assert.rejects(proxy.connect().create(FERN), { error: 40900, isOutcomeUnknown: true })
  })

  test('reports an unknown outcome if the retry is rejected', async (t) => {
    const proxy = await startFaultyProxy(t, [cutAfter, respond(403, { error: 40300, message: 'read-only' })])
    await assert.rejects(proxy.connect().create(FERN), { error: 40300, isOutcomeUnknown: true })
  })
})

suite('a list', { concurrency: true }, () => {
  for (const [where, fault] of [
    ['a response', cutWithin],
    ['a chunked response', cutWithinChunks],
  ] as const) {
    test(`requests only its second page again if the connection closes in the middle of ${where}`, async (t) => {
      const plants = Array.from({ length: 600 }, (_, id) => ({ id: BigInt(id), name: `Plant ${id}` }))
      const proxy = await startFaultyProxy(t, [undefined, fault, undefined, undefined, fault], createStore(...plants))
      const listed: ListedPlant[] = []
      for await (const plant of proxy.connect().list()) listed.push(plant)
      assert.deepEqual(listed, plants)
      assert.deepEqual(proxy.requests.slice(1), Array(2).fill('GET /plants?limit=500&after=499&include=id ada'))
      const withoutRetries = async (): Promise<void> => {
        for await (const { id } of proxy.connect({ retries: 0 }).list()) assert.ok(id < 500n)
      }
      await assert.rejects(withoutRetries, { name: 'PlantStoreError', status: 0, message: 'no response' })
    })
  }
})
