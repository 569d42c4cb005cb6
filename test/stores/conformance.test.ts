import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { storeConformance, type ConformanceOptions } from '../../src/conformance/store-conformance.ts'
import { isInt64, isValidText } from '../../src/plants/plant.ts'
import { MAX_PAGE, StoreUnavailableError, type Store } from '../../src/plants/store.ts'
import { createVariant, getBrokenStores, limitBytes, ReferenceStore } from '../support/broken-stores.ts'

const FAILURE_TEST = 'changes nothing while writes fail, and ping rejects, if the store implements ping'

type Options = Partial<ConformanceOptions<ReferenceStore & Store>>

/** Creates the options that make a variant of the reference store fail and work again. */
const breakable = {
  breakWrites: (store: ReferenceStore) =>
    void Object.assign(Object.getPrototypeOf(store) as object, { isBroken: true }),
  restore: (store: ReferenceStore) => void Object.assign(Object.getPrototypeOf(store) as object, { isBroken: false }),
}

/** Returns the tests of the suite by name. */
function registerTests(options: Options = {}): Map<string, () => Promise<void>> {
  const tests = new Map<string, () => Promise<void>>()
  const test = (name: string, run: () => Promise<void>) => tests.set(name, run)
  storeConformance({ test, create: () => createVariant(), ...breakable, ...options })
  return tests
}

async function getError(name: string, options: Options): Promise<Error> {
  const [outcome] = await Promise.allSettled([registerTests(options).get(name)!()])
  assert.equal(outcome.status, 'rejected')
  return outcome.reason as Error
}

suite('the conformance suite accepts', () => {
  for (const [name, options] of [
    ['a store without ping and close', {}],
    ['a store that is created asynchronously', { create: () => Promise.resolve(createVariant()) }],
    [
      'a store that always returns hasMore: true',
      {
        create: () =>
          createVariant((store) => ({ list: async (...args) => ({ ...(await store.list(...args)), hasMore: true }) })),
      },
    ],
    [
      'a store whose pages end with the plant that reaches maxBytes',
      {
        create: () => createVariant(limitBytes(({ name, tag = '' }) => Buffer.byteLength(name + tag))),
      },
    ],
    [
      'a store whose failed writes have an unknown outcome',
      {
        create: () =>
          createVariant((store) => {
            function writeUncertainly<T>(id: bigint, write: () => T): T {
              if (!store.isBroken) return write()
              store.isBroken = false
              if (id % 2n === 0n) write()
              store.isBroken = true
              throw new StoreUnavailableError('Connection lost', { isOutcomeUnknown: true })
            }
            return {
              create: (owner, plant) => writeUncertainly(plant.id, () => store.create(owner, plant)),
              delete: (owner, id) => writeUncertainly(id, () => store.delete(owner, id)),
            }
          }),
      },
    ],
  ] as const satisfies readonly (readonly [string, Options])[]) {
    test(name, async () => {
      for (const run of registerTests(options).values()) await run()
    })
  }
})

suite('the conformance suite says what a broken store does wrong:', () => {
  for (const [name, rows] of Object.entries(getBrokenStores())) {
    for (const [message, change] of rows) {
      test(`${name}: ${message}`, async () => {
        const error = await getError(name, { create: () => createVariant(change) })
        for (const part of message.split('…')) assert.ok(error.message.includes(part), error.message)
      })
    }
  }

  test('there is a broken store for each test of the suite', () => {
    assert.deepEqual(Object.keys(getBrokenStores()), [...registerTests().keys()])
  })
})

test('the conformance suite passes only valid arguments', async () => {
  const create = () =>
    createVariant((store) => ({
      create(owner, plant) {
        assert.ok(owner !== '' && isValidText(owner) && Buffer.byteLength(owner) <= 2000)
        assert.ok(isInt64(plant.id) && isValidText(plant.name) && (plant.tag === undefined || isValidText(plant.tag)))
        return store.create(owner, plant)
      },
      list(owner, request) {
        const { limit, maxBytes, after } = request
        assert.ok(limit >= 1 && limit <= MAX_PAGE && maxBytes >= 1 && (after === undefined || isInt64(after)))
        return store.list(owner, request)
      },
    }))
  for (const run of registerTests({ create }).values()) await run()
})

test('the conformance suite requires an empty store', async () => {
  const shared = new ReferenceStore()
  const [first, second] = registerTests({ create: () => Object.create(shared) as ReferenceStore }).values()
  await first!()
  await assert.rejects(second!(), {
    message: "create must return an empty store, not one with { id: 1n, name: 'Fern', owner: 'owner' }.",
  })
})

test('the conformance suite closes the store and restores its writes even if a test fails', async () => {
  let closes = 0
  const store = createVariant(() => ({ create: () => true, close: () => (closes++, undefined) }))
  await getError(FAILURE_TEST, { create: () => store })
  assert.deepEqual([closes, store.isBroken], [1, false])
})

test('the conformance suite tests failed writes only if it can break writes', () => {
  const tests = registerTests({ breakWrites: undefined, restore: undefined })
  assert.ok(!tests.has(FAILURE_TEST))
})

test('a conformance test fails after 10 s if a call never settles', async () => {
  const never = (): Promise<never> => new Promise(() => undefined)
  const message = (call: string) => ({ message: new RegExp(`^${call} .*did not respond within 10000 ms`) })
  const variant = (change: Partial<Store>): Options => ({ create: () => createVariant(() => change) })
  const run = (options: Options) => registerTests(options).get('close can be called twice')!()
  await Promise.all([
    assert.rejects(run(variant({ list: never })), message('.*list\\(.*\\)')),
    assert.rejects(run(variant({ close: never })), message('close\\(\\)')),
    assert.rejects(run({ create: never }), message('The create option')),
  ])
})
