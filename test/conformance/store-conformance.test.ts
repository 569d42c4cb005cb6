import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { NewPlant } from '../../src/plants/plant.ts'
import type { Store } from '../../src/plants/store.ts'
import { storeConformance, type ConformanceOptions } from '../../src/conformance/store-conformance.ts'
import { brokenStores, SortingStore } from './broken-stores.ts'

/** The suite's tests on a store, by their names. */
function suiteOf(options: Omit<ConformanceOptions, 'test'>): Map<string, () => Promise<void>> {
  const suite = new Map<string, () => Promise<void>>()
  storeConformance({ ...options, test: (name, run) => suite.set(name, run) })
  return suite
}

storeConformance({ test, create: () => new SortingStore() })

for (const { breaks, Store, fails } of brokenStores) {
  test(`fails a store that ${breaks}`, async () => {
    const check = suiteOf({ create: () => new Store() }).get(fails)
    assert.ok(check !== undefined, 'the suite has this test')
    await assert.rejects(check)
  })
}

test('has no test that every broken store passes', () => {
  const names = [...suiteOf({ create: () => new SortingStore() }).keys()]
  const proven = new Set(brokenStores.map(({ fails }) => fails))
  assert.deepEqual(
    names.filter((name) => !proven.has(name)),
    [],
  )
})

test('runs on a store that is made asynchronously, and has neither ping nor close', async () => {
  const create = (): Promise<Store> => {
    const store = new SortingStore()
    return Promise.resolve({
      create: (owner, plant) => store.create(owner, plant),
      list: (owner, page) => store.list(owner, page),
      delete: (owner, id) => store.delete(owner, id),
    })
  }
  for (const check of suiteOf({ create }).values()) await check()
})

test('makes a store for each test and closes it, also if the test fails', async () => {
  const open = new Set<Store>()
  let made = 0
  class UnreadableStore extends SortingStore {
    constructor() {
      super()
      made++
      open.add(this)
    }

    override list(): never {
      throw new Error('No list')
    }

    override close(): void {
      open.delete(this)
    }
  }
  const suite = suiteOf({ create: () => new UnreadableStore() })
  const outcomes = await Promise.allSettled([...suite.values()].map((check) => check()))
  assert.equal(made, suite.size)
  assert.equal(open.size, 0)
  assert.ok(outcomes.some(({ status }) => status === 'rejected'))
})

test('repeats its random operations for the same seed, and names the seed if one fails', async () => {
  class TaglessStore extends SortingStore {
    override create(owner: string, { id, name }: NewPlant): boolean | Promise<boolean> {
      return super.create(owner, { id, name })
    }
  }
  const messageOf = async (seed: number): Promise<string> => {
    const check = suiteOf({ create: () => new TaglessStore(), seed }).get(
      'does what a Map does, through 2,000 random operations',
    )
    return String(await check?.().catch((reason: unknown) => reason))
  }
  const message = await messageOf(7)
  assert.match(message, /^Error: list failed at step \d+ with seed 7$/)
  assert.equal(await messageOf(7), message)
  assert.match(await messageOf(8), /^Error: list failed at step \d+ with seed 8$/)
})
