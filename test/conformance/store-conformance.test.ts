import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { setImmediate as nextRound } from 'node:timers/promises'
import { everyCharacter } from '../../src/conformance/awkward-values.ts'
import { findDifference } from '../../src/conformance/steps.ts'
import { storeConformance, type ConformanceOptions } from '../../src/conformance/store-conformance.ts'
import { isInt64 } from '../../src/plants/int64.ts'
import type { NewPlant } from '../../src/plants/plant.ts'
import { MAX_PAGE, type Page, type StoreMethod } from '../../src/plants/store.ts'
import { isText } from '../../src/plants/text.ts'
import { BROKEN_STORES, changed, counting, SortingStore, type Change } from './broken-stores.ts'

/** The suite's tests on a store, which may differ from the simplest one, by their names. */
function suiteOf(change: Change = () => ({}), options?: Partial<ConformanceOptions>): Map<string, () => Promise<void>> {
  const suite = new Map<string, () => Promise<void>>()
  storeConformance({ create: () => changed(change), ...options, test: (name, run) => suite.set(name, run) })
  return suite
}

const RANDOM = 'does what a Map does, through 2,000 random operations'

// It is made asynchronously, and has neither ping nor close.
storeConformance({ test, create: () => Promise.resolve(new SortingStore()) })

test('takes a store that ends a page with the plant with which it comes to maxBytes', async () => {
  const checks = suiteOf(counting(({ name, tag = '' }) => Buffer.byteLength(name + tag)))
  for (const check of checks.values()) await check()
})

test('takes a store that lists at once, and creates some rounds of the event loop later', async () => {
  const checks = suiteOf((store) => ({
    async create(owner, plant) {
      await nextRound()
      await nextRound()
      return store.create(owner, plant)
    },
  }))
  await checks.get('lists what was created and deleted before, while others list too')?.()
})

test('calls a store only as the service does', async () => {
  const checks = suiteOf((store) => ({
    create(owner, { id, name, tag }) {
      assert.ok(isText(owner) && owner !== '')
      assert.ok(isInt64(id) && isText(name) && (tag === undefined || isText(tag)))
      return store.create(owner, { id, name, tag })
    },
    list(owner, request) {
      const { limit, maxBytes, after } = request
      assert.ok(isText(owner) && owner !== '')
      assert.ok(Number.isInteger(limit) && limit >= 1 && limit <= MAX_PAGE)
      assert.ok(Number.isInteger(maxBytes) && maxBytes >= 1)
      assert.ok(after === undefined || isInt64(after))
      return store.list(owner, request)
    },
    delete(owner, id) {
      assert.ok(isText(owner) && owner !== '' && isInt64(id))
      return store.delete(owner, id)
    },
  }))
  for (const check of checks.values()) await check()
})

/** What a test of the suite says of a store. */
async function complaintOf(name: string, change?: Change, options?: Partial<ConformanceOptions>): Promise<string> {
  const check = suiteOf(change, options).get(name)
  assert.ok(check !== undefined, 'the suite has this test')
  const [outcome] = await Promise.allSettled([check()])
  assert.equal(outcome.status, 'rejected')
  return (outcome.reason as Error).message
}

for (const [name, [says, change]] of Object.entries(BROKEN_STORES)) {
  test(`says what is wrong with a store that fails: ${name}`, async () => {
    const complaint = await complaintOf(name, change)
    assert.ok(complaint.includes(says), complaint)
  })
}

test('fails a store that is made with plants', async () => {
  const store = new SortingStore()
  void store.create('owner', { id: 42n, name: 'Fern' })
  const complaint = await complaintOf('may be closed twice', undefined, { create: () => store })
  assert.equal(
    complaint,
    "create of the options must make a store without plants. This one has { id: 42n, name: 'Fern', owner: 'owner' }.",
  )
})

suite('within storeTimeoutMs', { timeout: 60_000 }, () => {
  const never = (): Promise<never> => new Promise(() => undefined)
  const methods: readonly StoreMethod[] = ['create', 'list', 'delete', 'ping', 'close']
  for (const method of methods) {
    test(`must settle: ${method}`, async () => {
      const checks = suiteOf(() => ({ [method]: never }), { storeTimeoutMs: 20 })
      const outcomes = await Promise.allSettled([...checks.values()].map((check) => check()))
      const complaint = new RegExp(`^Error: ${method}\\(.*\\) must settle\\. It has not within 20 ms\\.$`)
      assert.ok(outcomes.some((outcome) => outcome.status === 'rejected' && complaint.test(String(outcome.reason))))
    })
  }

  test('must settle: create of the options', async () => {
    const complaint = await complaintOf('may be closed twice', undefined, { create: never, storeTimeoutMs: 20 })
    assert.equal(complaint, 'create of the options must settle. It has not within 20 ms.')
  })
})

test('says what a store throws, of which call with its long texts cut, and keeps the error as the cause', async () => {
  const thrown = new Error('disk full')
  const fail = (): never => {
    throw thrown
  }
  const check = suiteOf(() => ({ create: fail })).get('keeps names and tags of 64 KiB')!
  const text = `'${'x'.repeat(40)}'... 65496 more characters`
  await assert.rejects(check(), {
    message: `create('owner', { id: 0n, name: ${text}, tag: ${text} }) must not fail. It failed with Error: disk full`,
    cause: thrown,
  })
})

test('reports a result of list that has no plants', async () => {
  const name = 'ends a page before its limit only once names and tags come to maxBytes'
  const complaint = await complaintOf(name, () => ({ list: () => undefined as never }))
  assert.match(complaint, /^list\(.+\) must return an object with an array, plants\. It returned undefined\.$/)
})

suite('reports a wrong hasMore', () => {
  const name = 'lists at most as many plants as the limit says'
  const complaint = (hasMore: unknown): Promise<string> =>
    complaintOf(name, (store) => ({
      list: (owner, request) => ({ ...store.list(owner, request), hasMore: hasMore as boolean }),
    }))

  test('that is false although more plants follow', async () => {
    const says = 'must return hasMore: true if the owner has more plants after these. It returned false.'
    assert.ok((await complaint(false)).endsWith(says))
  })

  test('that is no boolean', async () => {
    assert.ok((await complaint(undefined)).endsWith('must return hasMore, true or false. It returned undefined.'))
  })
})

test('accepts a store that always returns hasMore: true', async () => {
  const checks = suiteOf((store) => ({
    list: (owner, request) => ({ ...store.list(owner, request), hasMore: true }),
  }))
  for (const check of checks.values()) await check()
})

test('has no test that every broken store passes', () => {
  assert.deepEqual(Object.keys(BROKEN_STORES), [...suiteOf().keys()])
})

test('makes a store for each test and closes it, also if the test fails', async () => {
  const open = new Set<number>()
  let made = 0
  const suite = suiteOf(() => {
    const number = ++made
    open.add(number)
    return { list: () => Promise.reject(new Error('No list')), close: () => void open.delete(number) }
  })
  const outcomes = await Promise.allSettled([...suite.values()].map((check) => check()))
  assert.equal(made, suite.size)
  assert.equal(open.size, 0)
  assert.ok(outcomes.some(({ status }) => status === 'rejected'))
})

test('repeats its random operations for the same seed, and names the seed if one fails', async () => {
  const dropTags: Change = (store) => ({ create: (owner, { id, name }) => store.create(owner, { id, name }) })
  const errorOf = async (seed: number): Promise<Error> => {
    const check = suiteOf(dropTags, { seed }).get(RANDOM)
    return (await check?.().catch((reason: unknown) => reason)) as Error
  }
  const { message, cause } = await errorOf(7)
  assert.match(message, /^Step \d+ with seed 7: list\(.* must return tags to the letter\. /)
  assert.ok(message.endsWith(`: ${(cause as Error).message}`))
  assert.equal((await errorOf(7)).message, message)
  assert.match((await errorOf(8)).message, /^Step \d+ with seed 8: list\(/)
})

test('does 2,000 random operations, of each kind for each of three owners', async () => {
  const calls: string[] = []
  const checks = suiteOf((store) => ({
    create: (owner, plant) => (calls.push(`create ${owner}`), store.create(owner, plant)),
    list: (owner, request) => (calls.push(`list ${owner}`), store.list(owner, request)),
    delete: (owner, id) => (calls.push(`delete ${owner}`), store.delete(owner, id)),
  }))
  await checks.get(RANDOM)?.()
  // The first list sees whether the store is empty.
  assert.equal(calls.shift(), 'list owner')
  assert.equal(calls.length, 2000)
  assert.equal(new Set(calls).size, 9)
})

test('every character stands once in texts of at most 64 KiB', () => {
  const texts = everyCharacter()
  assert.ok(texts.every((text) => isText(text) && Buffer.byteLength(text) <= 65_536))
  const characters = Array.from(texts.join(''), (character) => character.codePointAt(0)!)
  assert.ok(characters.every((character, i) => i === 0 || character > characters[i - 1]!))
  assert.equal(characters.length, 0x110000 - 1 - 0x800)
})

test('what is no plant is shown', () => {
  const page = { plants: [null], hasMore: false }
  const difference = findDifference(page, { plants: [], hasMore: false }, { limit: 1, maxBytes: 1000 })
  assert.equal(difference, 'must return plants whose id is a bigint. One is null.')
})

suite('two texts are shown', () => {
  const digits = '0123456789'
  const page = (name: string): Page => ({ plants: [{ id: 1n, name }], hasMore: false })
  for (const [how, actual, expected, from, is, must] of [
    ['from their start, if they part soon', 'Farn', 'Fern', 0, 'Farn', 'Fern'],
    ['from ten characters before they part', `${digits}abc`, `${digits}abd`, 2, '23456789abc', '23456789abd'],
    ['for 30', `a${digits.repeat(9)}`, digits.repeat(9), 0, `a${digits.repeat(2)}012345678`, digits.repeat(3)],
    ['if one is the start of the other', 'Fern', 'Ferns', 0, 'Fern', 'Ferns'],
    ['if the other is the start of the one', 'Ferns', 'Fern', 0, 'Ferns', 'Fern'],
    ['in ASCII, with controls as escapes', ' ~é\u007f', ' ~\u0001楓', 0, ' ~\\u00e9\\u007f', ' ~\\u0001\\u6953'],
  ] as const) {
    test(how, () => {
      const difference = findDifference(page(actual), page(expected), { limit: 1, maxBytes: 1000 })
      const part = `From character ${from} on, that of 1n is "${is}"…, and must be "${must}"….`
      assert.equal(difference, `must return names to the letter. ${part}`)
    })
  }
})

for (const name of ['id', 'name', 'tag'] as const) {
  test(`fails for a plant that inherits its ${name}`, () => {
    const { [name]: inherited, ...own } = { id: 1n, name: 'Fern', tag: 'green' }
    const plant = Object.assign(Object.create({ [name]: inherited }) as NewPlant, own)
    const expected = { plants: [{ id: 1n, name: 'Fern', tag: 'green' }], hasMore: false }
    const difference = findDifference({ plants: [plant], hasMore: false }, expected, { limit: 1, maxBytes: 1000 })
    assert.match(difference ?? '', /^must return plants whose id, name and tag are own properties\. /)
  })
}
