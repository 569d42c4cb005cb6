import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { createCheckedStore } from '../../src/plants/checked-store.ts'
import type { MaybePromise, PageRequest } from '../../src/plants/store.ts'
import { memoryStore } from '../../src/stores/memory-store.ts'
import { overrideStore } from '../support/override-store.ts'

const FERN = { id: 7n, name: 'Fern' }
const PAGE = { limit: 2, maxBytes: 1000 }

type Method = 'create' | 'list' | 'delete'

/** Calls one method of a checked store whose inner method returns the result. */
function callStore(method: Method, result: unknown, request: PageRequest = PAGE): MaybePromise<unknown> {
  const store = createCheckedStore(overrideStore(memoryStore(), { [method]: () => result }), 20)
  if (method === 'list') return store.list('ada', request)
  return method === 'create' ? store.create('ada', FERN) : store.delete('ada', FERN.id)
}

for (const method of ['create', 'delete'] as const) {
  suite(`the checked ${method} method`, () => {
    for (const result of [undefined, null, 1, 'true', {}]) {
      test(`rejects a result of ${JSON.stringify(result)}`, async () => {
        const expected = new TypeError('store.create and store.delete must return true or false')
        assert.throws(() => callStore(method, result), expected)
        await assert.rejects(async () => await callStore(method, Promise.resolve(result)), expected)
      })
    }
  })
}

test('a call that has settled leaves no timer', async () => {
  const countTimers = (): number => process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length
  const before = countTimers()
  await callStore('create', Promise.resolve(true))
  assert.equal(countTimers(), before)
})

suite('the checked list method', () => {
  const plants = [1n, 2n, 3n].map((id) => ({ id, name: `${id}` }))
  const order = 'store.list must return plants in ascending order of id, with bigint ids greater than after'
  const shape = 'store.list must return { plants: [...], hasMore: true or false }, not'
  const page = (...plants: readonly unknown[]) => ({ plants, hasMore: false })
  const wrong: readonly (readonly [name: string, message: string, page: unknown, after?: bigint])[] = [
    ['undefined', `${shape} undefined`, undefined],
    ['null', `${shape} null`, null],
    ['an array of plants', `${shape} [Array]`, plants.slice(0, 1)],
    ['plants that are not an array', `${shape} [Object]`, { plants: { length: 1, at: () => FERN }, hasMore: false }],
    ['a missing hasMore', `${shape} [Object]`, { plants: [FERN] }],
    ['a hasMore that is a string', `${shape} [Object]`, { plants: [FERN], hasMore: 'false' }],
    ['more plants than the limit', 'store.list returned 3 plants, but limit is 2', page(...plants)],
    ['a plant whose id is a number', order, page({ id: 1, name: 'Fern' }, FERN)],
    ['plants in descending order', order, page(...plants.slice(0, 2).reverse())],
    ['a plant twice', order, page(FERN, FERN)],
    ['the plant at the cursor', order, page(...plants.slice(1, 2)), 2n],
    ['plants before the cursor', order, page(...plants.slice(0, 2)), 3n],
    ['a plant at the cursor and one after it', order, page(...plants.slice(1)), 2n],
  ]
  for (const [name, message, page, after] of wrong) {
    test(`rejects ${name}`, () => {
      assert.throws(() => callStore('list', page, { ...PAGE, after }), new TypeError(message))
    })
  }
})

test('a promise that settles in time is returned, and one that does not rejects with an unknown outcome', async () => {
  assert.equal(await callStore('create', Promise.resolve(true)), true)
  await assert.rejects(async () => await callStore('create', new Promise(() => undefined)), {
    message: 'The store did not respond within 20 ms.',
    isOutcomeUnknown: true,
  })
})
