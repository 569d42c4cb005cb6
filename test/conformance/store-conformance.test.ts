import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { setImmediate as nextTick } from 'node:timers/promises'
import { listAllCharacters } from '../../src/conformance/edge-cases.ts'
import { findDifference } from '../../src/conformance/assertions.ts'
import { storeConformance, type ConformanceOptions } from '../../src/conformance/store-conformance.ts'
import { isInt64 } from '../../src/plants/int64.ts'
import type { NewPlant } from '../../src/plants/plant.ts'
import { MAX_PAGE, StoreUnavailableError, type Page, type StoreMethod } from '../../src/plants/store.ts'
import { isValidText } from '../../src/plants/text.ts'
import {
  BROKEN_STORES,
  createBrokenStore,
  FAILURE_OPTIONS,
  limitPageBytes,
  ReferenceStore,
  type BreakableStore,
  type StoreChange,
} from './broken-stores.ts'

/** Returns the conformance tests by name, for a variant of the reference store. */
function createSuite(
  change: StoreChange = () => ({}),
  options?: Partial<ConformanceOptions<BreakableStore>>,
): Map<string, () => Promise<void>> {
  const suite = new Map<string, () => Promise<void>>()
  const defaults = { create: () => createBrokenStore(change), ...FAILURE_OPTIONS }
  storeConformance({ ...defaults, ...options, test: (name, run) => suite.set(name, run) })
  return suite
}

const RANDOM_OPERATIONS = 'behaves like a Map in 2,000 random operations'

// The reference store is created asynchronously, and has neither ping nor close.
storeConformance({ test, create: () => Promise.resolve(new ReferenceStore()), ...FAILURE_OPTIONS })

test('accepts a store whose pages end with the plant that reaches maxBytes', async () => {
  const checks = createSuite(limitPageBytes(({ name, tag = '' }) => Buffer.byteLength(name + tag)))
  for (const check of checks.values()) await check()
})

test('accepts a store with a synchronous list() and an asynchronous create()', async () => {
  const checks = createSuite((store) => ({
    async create(owner, plant) {
      await nextTick()
      await nextTick()
      return store.create(owner, plant)
    },
  }))
  await checks.get('lists the result of every completed write while other lists are running')?.()
})

test('passes only valid arguments to the store', async () => {
  const checks = createSuite((store) => ({
    create(owner, { id, name, tag }) {
      assert.ok(isValidText(owner) && owner !== '')
      assert.ok(isInt64(id) && isValidText(name) && (tag === undefined || isValidText(tag)))
      return store.create(owner, { id, name, tag })
    },
    list(owner, request) {
      const { limit, maxBytes, after } = request
      assert.ok(isValidText(owner) && owner !== '')
      assert.ok(Number.isInteger(limit) && limit >= 1 && limit <= MAX_PAGE)
      assert.ok(Number.isInteger(maxBytes) && maxBytes >= 1)
      assert.ok(after === undefined || isInt64(after))
      return store.list(owner, request)
    },
    delete(owner, id) {
      assert.ok(isValidText(owner) && owner !== '' && isInt64(id))
      return store.delete(owner, id)
    },
  }))
  for (const check of checks.values()) await check()
})

/** Runs a conformance test that must fail, and returns its error message. */
async function getFailureMessage(
  name: string,
  change?: StoreChange,
  options?: Partial<ConformanceOptions<BreakableStore>>,
): Promise<string> {
  const check = createSuite(change, options).get(name)
  assert.ok(check !== undefined, 'the suite must have this test')
  const [outcome] = await Promise.allSettled([check()])
  assert.equal(outcome.status, 'rejected')
  return (outcome.reason as Error).message
}

suite('the conformance suite explains why a broken store fails a test', () => {
  for (const [name, [expectedMessage, change]] of Object.entries(BROKEN_STORES)) {
    test(`"${name}"`, async () => {
      const message = await getFailureMessage(name, change)
      assert.ok(message.includes(expectedMessage), message)
    })
  }
})

test('fails if the create option returns a store that contains plants', async () => {
  const store = new ReferenceStore()
  void store.create('owner', { id: 42n, name: 'Fern' })
  const message = await getFailureMessage('close can be called twice', undefined, { create: () => store })
  const plant = "{ id: 42n, name: 'Fern', owner: 'owner' }"
  assert.equal(
    message,
    `The create option returned a store that already contains ${plant}. It must return an empty store each time.`,
  )
})

suite('a conformance test times out after storeTimeoutMs', { timeout: 60_000 }, () => {
  const never = (): Promise<never> => new Promise(() => undefined)
  const methods: readonly StoreMethod[] = ['create', 'list', 'delete', 'ping', 'close']
  for (const method of methods) {
    test(`if ${method} never settles`, async () => {
      const checks = createSuite(() => ({ [method]: never }), { storeTimeoutMs: 20 })
      const outcomes = await Promise.allSettled([...checks.values()].map((check) => check()))
      const message = new RegExp(`^Error: ${method}\\(.*\\) timed out after 20 ms\\.$`)
      assert.ok(outcomes.some((outcome) => outcome.status === 'rejected' && message.test(String(outcome.reason))))
    })
  }

  test('a conformance test times out if the create option never settles', async () => {
    const message = await getFailureMessage('close can be called twice', undefined, {
      create: never,
      storeTimeoutMs: 20,
    })
    assert.equal(message, 'The create option timed out after 20 ms.')
  })
})

test('reports the failed store call and its error', async () => {
  const thrown = new Error('disk full')
  const fail = (): never => {
    throw thrown
  }
  const check = createSuite(() => ({ create: fail })).get('preserves names and tags of 64 KiB')!
  const text = `'${'x'.repeat(40)}'... 65496 more characters`
  await assert.rejects(check(), {
    message: `create('owner', { id: 0n, name: ${text}, tag: ${text} }) failed: Error: disk full`,
    cause: thrown,
  })
})

test('reports a list result that is not a page', async () => {
  const name = 'ends a page before limit only if its names and tags add up to maxBytes'
  const message = await getFailureMessage(name, () => ({ list: () => undefined as never }))
  assert.match(message, /^list\(.+\) returned undefined instead of an object with a plants array\.$/)
})

suite('hasMore', () => {
  const name = 'lists at most limit plants'
  const failureMessage = (hasMore: unknown): Promise<string> =>
    getFailureMessage(name, (store) => ({
      list: (owner, request) => ({ ...store.list(owner, request), hasMore: hasMore as boolean }),
    }))

  test('a conformance test fails if hasMore is false although the owner has more plants', async () => {
    const expected = 'returned hasMore: false, although the owner has more plants after these.'
    assert.ok((await failureMessage(false)).endsWith(expected))
  })

  test('a conformance test fails if hasMore is undefined', async () => {
    assert.ok((await failureMessage(undefined)).endsWith('returned undefined as hasMore, which must be true or false.'))
  })
})

test('accepts a store that always returns hasMore: true', async () => {
  const checks = createSuite((store) => ({
    list: (owner, request) => ({ ...store.list(owner, request), hasMore: true }),
  }))
  for (const check of checks.values()) await check()
})

test('BROKEN_STORES contains a broken store for every conformance test', () => {
  assert.deepEqual(Object.keys(BROKEN_STORES), [...createSuite().keys()])
})

test("closes the test's store even if the test fails", async () => {
  const open = new Set<number>()
  let made = 0
  const suite = createSuite(() => {
    const number = ++made
    open.add(number)
    return { list: () => Promise.reject(new Error('No list')), close: () => void open.delete(number) }
  })
  const outcomes = await Promise.allSettled([...suite.values()].map((check) => check()))
  assert.equal(made, suite.size)
  assert.equal(open.size, 0)
  assert.ok(outcomes.some(({ status }) => status === 'rejected'))
})

test('prints the name of the store in the names of its tests', () => {
  const names = [...createSuite(undefined, { name: 'my store' }).keys()]
  assert.ok(names.length > 0 && names.every((name) => name.startsWith('my store: ')))
})

test('uses another owner after a failed test, so that its late writes fail no other test', async () => {
  const shared = new ReferenceStore()
  let isSlow = true
  const suite = createSuite(undefined, {
    storeTimeoutMs: 20,
    create: () =>
      createBrokenStore(() => ({
        async create(owner, plant) {
          const result = shared.create(owner, plant)
          if (isSlow) await new Promise((resolve) => setTimeout(resolve, 100))
          return result
        },
        list: (owner, request) => shared.list(owner, request),
      })),
  })
  await assert.rejects(suite.get('returns a created plant with its id, name and tag')!(), /timed out after 20 ms\.$/)
  isSlow = false
  await suite.get('distinguishes a missing tag from an empty tag')!()
})

test('reproduces a failure from its seed', async () => {
  const dropTags: StoreChange = (store) => ({ create: (owner, { id, name }) => store.create(owner, { id, name }) })
  const errorOf = async (seed: number): Promise<Error> => {
    const check = createSuite(dropTags, { seed }).get(RANDOM_OPERATIONS)
    return (await check?.().catch((reason: unknown) => reason)) as Error
  }
  const { message, cause } = await errorOf(7)
  assert.match(message, /^Step \d+ \(seed 7\): list\(.* returned a wrong tag for plant /)
  assert.ok(message.endsWith(`: ${(cause as Error).message}`))
  assert.equal((await errorOf(7)).message, message)
  assert.match((await errorOf(8)).message, /^Step \d+ \(seed 8\): list\(/)
})

test('runs 2,000 random creates, lists and deletes for three owners', async () => {
  const calls: string[] = []
  const checks = createSuite((store) => ({
    create: (owner, plant) => (calls.push(`create ${owner}`), store.create(owner, plant)),
    list: (owner, request) => (calls.push(`list ${owner}`), store.list(owner, request)),
    delete: (owner, id) => (calls.push(`delete ${owner}`), store.delete(owner, id)),
  }))
  await checks.get(RANDOM_OPERATIONS)?.()
  // The first call checks that the store is empty.
  assert.equal(calls.shift(), 'list owner')
  assert.equal(calls.length, 2000)
  assert.equal(new Set(calls).size, 9)
})

suite('the conformance suite, while writes fail', () => {
  const name = 'stores no plants when creates fail'

  test('accepts writes with an unknown outcome, whether or not they took effect', async () => {
    const checks = createSuite((store) => {
      const runUncertainly = (id: bigint, write: () => boolean): boolean => {
        if (!store.isBroken) return write()
        store.isBroken = false
        if (id % 2n === 0n) write()
        store.isBroken = true
        throw new StoreUnavailableError('Connection lost', { isOutcomeUnknown: true })
      }
      return {
        create: (owner, plant) => runUncertainly(plant.id, () => store.create(owner, plant)),
        delete: (owner, id) => runUncertainly(id, () => store.delete(owner, id)),
      }
    })
    for (const check of checks.values()) await check()
  })

  test('rejects a store whose create reports success after breakWrites', async () => {
    const message = await getFailureMessage(name, (store) => ({ create: () => store.isBroken || true }))
    const plant = "{ id: 1n, name: 'Plant 1', tag: 'Tag 1' }"
    assert.equal(message, `A write of ${plant} returned true, although breakWrites had been called.`)
  })

  test('rejects a store that throws anything but a StoreUnavailableError', async () => {
    const message = await getFailureMessage(name, (store) => ({
      create(owner, plant) {
        if (store.isBroken) throw new Error('disk full')
        return store.create(owner, plant)
      },
    }))
    assert.match(message, /^create\(.+\) failed: Error: disk full, which is not a StoreUnavailableError\.$/)
  })

  test('calls restore even if a conformance test fails', async () => {
    const store = createBrokenStore(() => ({ create: () => true }))
    await getFailureMessage(name, undefined, { create: () => store })
    assert.equal(store.isBroken, false)
  })

  for (const option of ['breakWrites', 'restore'] as const) {
    test(`reports an error from the ${option} option`, async () => {
      const fail = () => Promise.reject(new Error('no such file'))
      const message = await getFailureMessage(name, undefined, { [option]: fail })
      assert.equal(message, `The ${option} option failed: Error: no such file`)
    })

    test(`requires the ${option} option if the other one is set`, () => {
      const message = '`breakWrites` and `restore` require each other: set both or neither'
      assert.throws(() => createSuite(undefined, { [option]: undefined }), new TypeError(message))
    })
  }

  test('skips the tests of failed writes without breakWrites and restore', () => {
    const checks = createSuite(undefined, { breakWrites: undefined, restore: undefined })
    assert.ok(checks.size > 0 && !checks.has(name))
  })
})

test('listAllCharacters returns every Unicode character once, in strings of at most 64 KiB', () => {
  const texts = listAllCharacters()
  assert.ok(texts.every((text) => isValidText(text) && Buffer.byteLength(text) <= 65_536))
  const characters = Array.from(texts.join(''), (character) => character.codePointAt(0)!)
  assert.ok(characters.every((character, i) => i === 0 || character > characters[i - 1]!))
  assert.equal(characters.length, 0x110000 - 1 - 0x800)
})

test('reports a null plant', () => {
  const page = { plants: [null], hasMore: false }
  const difference = findDifference(page, { plants: [], hasMore: false }, { limit: 1, maxBytes: 1000 })
  assert.equal(difference, "returned a plant whose id isn't a bigint: null.")
})

suite('the error for a wrong plant name quotes an excerpt of the name', () => {
  const digits = '0123456789'
  const page = (name: string): Page => ({ plants: [{ id: 1n, name }], hasMore: false })
  for (const [name, actual, expected, start, actualExcerpt, expectedExcerpt] of [
    ['that starts at the first character if the names differ early', 'Farn', 'Fern', 0, 'Farn', 'Fern'],
    [
      'that starts ten characters before the difference',
      `${digits}abc`,
      `${digits}abd`,
      2,
      '23456789abc',
      '23456789abd',
    ],
    [
      'that is 30 characters long',
      `a${digits.repeat(9)}`,
      digits.repeat(9),
      0,
      `a${digits.repeat(2)}012345678`,
      digits.repeat(3),
    ],
    ['if the name is truncated', 'Fern', 'Ferns', 0, 'Fern', 'Ferns'],
    ['if the name is too long', 'Ferns', 'Fern', 0, 'Ferns', 'Fern'],
    [
      'that escapes control and non-ASCII characters',
      ' ~é\u007f',
      ' ~\u0001楓',
      0,
      ' ~\\u00e9\\u007f',
      ' ~\\u0001\\u6953',
    ],
  ] as const) {
    test(name, () => {
      const difference = findDifference(page(actual), page(expected), { limit: 1, maxBytes: 1000 })
      assert.equal(
        difference,
        `returned a wrong name for plant 1n: starting at character ${start}, "${actualExcerpt}"… instead of "${expectedExcerpt}"….`,
      )
    })
  }
})

for (const name of ['id', 'name', 'tag'] as const) {
  test(`reports a plant that inherits its ${name}`, () => {
    const { [name]: inherited, ...own } = { id: 1n, name: 'Fern', tag: 'green' }
    const plant = Object.assign(Object.create({ [name]: inherited }) as NewPlant, own)
    const expected = { plants: [{ id: 1n, name: 'Fern', tag: 'green' }], hasMore: false }
    const difference = findDifference({ plants: [plant], hasMore: false }, expected, { limit: 1, maxBytes: 1000 })
    assert.ok(difference?.startsWith(`returned a plant whose ${name} isn't an own property: `), difference)
  })
}
