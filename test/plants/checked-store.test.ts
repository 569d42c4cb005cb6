import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import type { MaybePromise } from '../../src/maybe-promise.ts'
import { checkStore } from '../../src/plants/checked-store.ts'
import type { PageRequest } from '../../src/plants/store.ts'
import { memoryStore } from '../../src/stores/memory-store.ts'
import { delegatingStore } from '../support/database/delegating-store.ts'

const FERN = { id: 7n, name: 'Fern' }
const PAGE = { limit: 2, maxBytes: 1000 }

type Method = 'create' | 'list' | 'delete'

/** Calls a store of which one method returns something. */
function call(method: Method, result: unknown, request: PageRequest = PAGE): MaybePromise<unknown> {
  const store = checkStore(delegatingStore(memoryStore(), { [method]: () => result }), 20)
  if (method === 'list') return store.list('ada', request)
  return method === 'create' ? store.create('ada', FERN) : store.delete('ada', FERN.id)
}

for (const method of ['create', 'delete'] as const) {
  suite(`the ${method} of a store`, () => {
    for (const result of [undefined, null, 1, 'true', {}]) {
      test(`must not return ${JSON.stringify(result)}`, async () => {
        const expected = new TypeError('create and delete of a store must return true or false')
        assert.throws(() => call(method, result), expected)
        await assert.rejects(async () => await call(method, Promise.resolve(result)), expected)
      })
    }
  })
}

suite('the list of a store', () => {
  const plants = [1n, 2n, 3n].map((id) => ({ id, name: `${id}` }))
  const wrong: readonly (readonly [name: string, page: unknown, after?: bigint])[] = [
    ['no array', { length: 1, at: () => FERN }],
    ['nothing', undefined],
    ['more plants than the limit', plants],
    ['a plant whose id is a number', [{ id: 1, name: 'Fern' }, FERN]],
    ['plants out of order', plants.slice(0, 2).reverse()],
    ['a plant twice', [FERN, FERN]],
    ['the plant at the cursor', plants.slice(1, 2), 2n],
    ['plants before the cursor', plants.slice(0, 2), 3n],
    ['a plant at the cursor and one after it', plants.slice(1), 2n],
  ]
  for (const [name, page, after] of wrong) {
    test(`must not return ${name}`, () => {
      assert.throws(
        () => call('list', page, { ...PAGE, after }),
        new TypeError('list of a store must return an array of at most limit plants, ascending and beyond after'),
      )
    })
  }
})
