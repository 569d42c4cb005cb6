import assert from 'node:assert/strict'
import { test } from 'node:test'
import { memoryStore, type NewPlant, type Store } from '../../src/index.ts'
import { EncodedPlant } from '../../src/plants/plant.ts'
import { createStoreCallMetrics } from '../../src/standalone/metrics/store-call-metrics.ts'
import { get, sendRequest, servePlants } from '../support/wire/service.ts'

/** A plant whose JSON would change if it were decoded and re-encoded. */
const PLANT = new EncodedPlant(1n, '"name":"F\\u0065rn"},{') as unknown as NewPlant
const ENCODED = '[{"name":"F\\u0065rn"}]'
const DECODED = '[{"name":"Fern"}]'

function createStoreWithPlant(): Store {
  const store = memoryStore()
  void store.create('ada', PLANT)
  return store
}

for (const [what, wrap, expected] of [
  ['the stored JSON of a built-in store without decoding it', (store: Store) => store, ENCODED],
  [
    'the stored JSON of a built-in store that is instrumented for metrics',
    (store: Store) => createStoreCallMetrics().instrument(store),
    ENCODED,
  ],
  [
    'decoded plants of a custom store that delegates to a built-in store',
    (store: Store) => ({ ...store, list: (...args: Parameters<Store['list']>) => store.list(...args) }),
    DECODED,
  ],
] as const) {
  test(`sends ${what}`, async (t) => {
    const server = await servePlants(t, { store: wrap(createStoreWithPlant()) })
    assert.equal((await sendRequest(server, get('ada'))).body, expected)
  })
}

test('sends the plants as modified by a custom wrapper around a built-in store', async (t) => {
  const inner = createStoreWithPlant()
  const list: Store['list'] = async (owner, request) => {
    const { plants, hasMore } = await inner.list(owner, request)
    return { plants: plants.map((plant) => ({ ...plant, tag: plant.name.toUpperCase() })), hasMore }
  }
  const server = await servePlants(t, { store: { ...inner, list } })
  assert.equal((await sendRequest(server, get('ada'))).body, '[{"name":"Fern","tag":"FERN"}]')
})

test('an instrumented built-in store returns decoded plants to callers outside the service', async () => {
  const { plants } = await createStoreCallMetrics()
    .instrument(createStoreWithPlant())
    .list('ada', { limit: 1, maxBytes: 1 })
  assert.deepEqual(plants, [{ id: 1n, name: 'Fern' }])
})

test('instrumenting a custom store does not change the plants that it lists', async () => {
  const plants = [{ id: 1n, name: 'Fern' }]
  const store = { ...memoryStore(), list: () => ({ plants, hasMore: false }) }
  const page = await createStoreCallMetrics().instrument(store).list('ada', { limit: 1, maxBytes: 1 })
  assert.deepEqual(page, { plants, hasMore: false })
})
