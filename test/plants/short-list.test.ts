import assert from 'node:assert/strict'
import { test } from 'node:test'
import { memoryStore, type NewPlant, type Store } from '../../src/index.ts'
import { shortListsOf } from '../../src/plants/short-list.ts'
import { delegatingStore } from '../support/database/delegating-store.ts'
import { get, send, servePlants } from '../support/wire/service.ts'

const FERN: NewPlant = { id: 7n, name: 'Fern' }

function storeOf(...plants: readonly NewPlant[]): Store {
  const store = memoryStore()
  for (const plant of plants) void store.create('ada', plant)
  return store
}

test('a store that lists by pages alone makes no short lists', () => {
  assert.equal(shortListsOf(delegatingStore(memoryStore(), {})), undefined)
})

const MOSS: NewPlant = { id: 8n, name: 'Moss' }
const list = (): readonly NewPlant[] => [MOSS]

/** How a host has its own `list` called in the place of that of a store. */
const REPLACEMENTS: readonly (readonly [way: string, replace: (store: Store) => Store])[] = [
  ['in a copy of the store', (store) => ({ ...store, list })],
  ['in the store itself', (store) => Object.assign(store, { list })],
  ['in an object that inherits from the store', (store) => Object.assign(Object.create(store) as Store, { list })],
  ['in a proxy', (store) => delegatingStore(store, { list })],
  [
    'with the properties of the first',
    (store) => {
      const properties = Object.getOwnPropertyDescriptors(Reflect.get(store, 'list'))
      return { ...store, list: Object.defineProperties(() => [MOSS], properties) }
    },
  ],
]

for (const [way, replace] of REPLACEMENTS) {
  test(`a list that a host has put in the place of another is called: ${way}`, async (t) => {
    const server = await servePlants(t, { store: replace(storeOf(FERN)) })
    const { status, body } = await send(server, get('ada'))
    assert.deepEqual([status, body], [200, '[{"name":"Moss"}]'])
  })
}

test('a list that a host puts in its place later is called from then on', async (t) => {
  const store = storeOf(FERN)
  const server = await servePlants(t, { store })
  assert.equal((await send(server, get('ada'))).body, '[{"name":"Fern"}]')
  Object.assign(store, { list })
  assert.equal((await send(server, get('ada'))).body, '[{"name":"Moss"}]')
})
