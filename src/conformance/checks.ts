import { MIN_INT64 } from '../legacy/plants/int64.ts'
import type { NewPlant } from '../legacy/plants/plant.ts'
import { MAX_PAGE } from '../legacy/plants/store.ts'
import { yieldToEventLoop } from '../legacy/timers.ts'
import { EDGE_CASE_IDS, EDGE_CASE_OWNERS, EDGE_CASE_TEXTS, listAllCharacters, LONG_TEXTS } from './edge-cases.ts'
import {
  assertCreate,
  assertDelete,
  assertStored,
  assertList,
  assertOneSucceeded,
  assertPages,
  createAll,
  UNLIMITED_BYTES,
  plantsOf,
  type ConformanceCheck,
  type TestedStore,
} from './assertions.ts'

const idsBelow = (count: number): bigint[] => Array.from({ length: count }, (_, i) => BigInt(i))
const plantsOfOwner = (owner: string): NewPlant[] => [1n, 11n].map((id) => ({ id, name: owner }))
const plantsWith = (texts: readonly string[]) => texts.map((text, i) => ({ id: BigInt(i), name: text, tag: text }))

export const CHECKS: Readonly<Record<string, ConformanceCheck>> = {
  async 'returns a created plant with its id, name and tag'(store) {
    await assertStored(store, [{ id: 42n, name: 'Monstera', tag: 'tropical' }])
  },

  async 'returns an empty page for an owner without plants'(store) {
    await createAll(store, 'owner', plantsOf([1n]))
    await assertList(store, 'another', [])
  },

  async 'distinguishes a missing tag from an empty tag'(store) {
    const fern = { id: 1n, name: 'Fern' }
    await assertStored(store, [fern, { ...fern, id: 2n, tag: '' }, { ...fern, id: 3n, tag: undefined }])
  },

  async 'create returns false for a duplicate id and leaves the first plant unchanged'(store) {
    const plants = [
      { id: 1n, name: 'first' },
      { id: 2n, name: 'first', tag: 'first' },
    ]
    await createAll(store, 'owner', plants)
    await assertCreate(store, 'owner', { id: 1n, name: 'second', tag: 'second' }, false)
    await assertCreate(store, 'owner', { id: 2n, name: 'second' }, false)
    await assertList(store, 'owner', plants)
  },

  async 'delete removes only the requested plant'(store) {
    await createAll(store, 'owner', plantsOf([1n, 2n, 3n]))
    await assertDelete(store, 'owner', 2n)
    await assertList(store, 'owner', plantsOf([1n, 3n]))
  },

  async 'delete returns false for an unknown id'(store) {
    await assertDelete(store, 'owner', 1n, false)
    await createAll(store, 'owner', plantsOf([1n]))
    await assertDelete(store, 'owner', 2n, false)
    await assertDelete(store, 'owner', 1n)
    await assertDelete(store, 'owner', 1n, false)
  },

  async 'allows reusing the id of a deleted plant'(store) {
    await createAll(store, 'owner', [{ id: 1n, name: 'first', tag: 'first' }])
    await assertDelete(store, 'owner', 1n)
    await assertCreate(store, 'owner', { id: 1n, name: 'second' })
    await assertList(store, 'owner', [{ id: 1n, name: 'second' }])
  },

  async 'separates owners with similar names'(store) {
    for (const owner of EDGE_CASE_OWNERS) await createAll(store, owner, plantsOfOwner(owner))
    for (const owner of EDGE_CASE_OWNERS) await assertList(store, owner, plantsOfOwner(owner))
  },

  async 'never deletes a plant of another owner'(store) {
    for (const owner of EDGE_CASE_OWNERS) await createAll(store, owner, plantsOf([1n, 2n]))
    await assertDelete(store, 'another', 1n, false)
    for (const owner of EDGE_CASE_OWNERS) await assertDelete(store, owner, 1n)
    // Delete in reverse order: a broken store that confuses two owners might always delete the plant that was created
    // first, which would go unnoticed in the original order.
    for (const owner of EDGE_CASE_OWNERS.toReversed()) {
      await assertDelete(store, owner, 2n)
      await assertList(store, owner, [])
    }
  },

  async 'preserves ids exactly across the int64 range'(store) {
    await createAll(store, 'owner', plantsOf(EDGE_CASE_IDS))
    for (const [index, id] of EDGE_CASE_IDS.entries()) {
      await assertList(store, 'owner', plantsOf(EDGE_CASE_IDS.slice(index)))
      await assertDelete(store, 'owner', id)
    }
  },

  async 'lists plants by ascending id, regardless of the insertion order'(store) {
    const remaining = plantsOf(EDGE_CASE_IDS)
    while (remaining.length > 0) await createAll(store, 'owner', [...remaining.splice(0, 1), ...remaining.splice(-1)])
    await assertList(store, 'owner', plantsOf(EDGE_CASE_IDS))
  },

  async 'lists at most limit plants'(store) {
    const plants = plantsOf(idsBelow(MAX_PAGE + 1))
    await Promise.all(plants.map((plant) => assertCreate(store, 'owner', plant)))
    for (const limit of [1, 2, MAX_PAGE - 1, MAX_PAGE]) {
      await assertList(store, 'owner', plants, { limit })
    }
  },

  async 'ends a page before limit only if its names and tags add up to maxBytes'(store) {
    const texts = ['fern', '楓'.repeat(20), '\n'.repeat(60), '"'.repeat(60), 'x'.repeat(3000)]
    const plants = texts
      .flatMap((name) => [undefined, ...texts].map((tag) => ({ name, tag })))
      .map((plant, i) => ({ ...plant, id: BigInt(i) }))
    await createAll(store, 'owner', plants)
    for (const limit of [7, MAX_PAGE]) {
      for (const maxBytes of [1, 5, 60, 500, 5000]) await assertPages(store, 'owner', plants, { limit, maxBytes })
    }
  },

  async 'lists only ids greater than after'(store) {
    await createAll(store, 'owner', plantsOf(EDGE_CASE_IDS))
    for (const after of [...EDGE_CASE_IDS, -50n, 2n, 50n, 2n ** 52n, 2n ** 62n]) {
      await assertList(store, 'owner', plantsOf(EDGE_CASE_IDS.filter((id) => id > after)), { after })
    }
    await assertList(store, 'owner', plantsOf(EDGE_CASE_IDS.filter((id) => id > 0n)), { limit: 2, after: 0n })
  },

  async 'lists each plant once across pages while plants are created and deleted'(store) {
    const ids = new Set(Array.from({ length: 100 }, (_, i) => BigInt(i * 10)))
    await createAll(store, 'owner', plantsOf([...ids]))
    let after = MIN_INT64
    for (const limit of [7, 1, 20, 3, 7, MAX_PAGE]) {
      const following = [...ids].filter((id) => id > after).sort((a, b) => Number(a - b))
      await assertList(store, 'owner', plantsOf(following), { limit, after })
      after = following.slice(0, limit).at(-1)!
      for (const plant of plantsOf([after - 5n, after + 5n])) {
        await assertCreate(store, 'owner', plant, !ids.has(plant.id))
        ids.add(plant.id)
      }
      // This also deletes the plant at the cursor. The next page must still start after its id.
      for (const id of [after, after - 10n, after + 10n]) await assertDelete(store, 'owner', id, ids.delete(id))
    }
  },

  'preserves names and tags exactly': (store) => assertStored(store, plantsWith(EDGE_CASE_TEXTS)),

  'preserves every Unicode character except U+0000': (store) => assertStored(store, plantsWith(listAllCharacters())),

  'preserves names and tags of 64 KiB': (store) => assertStored(store, plantsWith(LONG_TEXTS)),

  'behaves like a Map in 2,000 random operations': (store, { seed }) => compareWithMap(store, seed),

  async 'lets exactly one of 50 concurrent creates with the same id succeed'(store) {
    const plants = Array.from({ length: 50 }, (_, i) => ({ id: 1n, name: `Fern ${i}` }))
    const results = await Promise.all(plants.map((plant) => store.create('owner', plant)))
    assertOneSucceeded('create', results)
    const created = plants.filter((_, i) => results[i])
    await assertList(store, 'owner', created)
  },

  async 'lets exactly one of 50 concurrent deletes of a plant succeed'(store) {
    await createAll(store, 'owner', plantsOf([1n, 2n]))
    const results = await Promise.all(Array.from({ length: 50 }, () => store.delete('owner', 1n)))
    assertOneSucceeded('delete', results)
    await assertList(store, 'owner', plantsOf([2n]))
  },

  async 'returns the right result for each of 300 concurrent creates and deletes'(store) {
    const ids = idsBelow(300)
    const hasPlant = (id: bigint): boolean => id % 3n === 0n
    const isExpected = (id: bigint): boolean => id % 2n === 0n
    await createAll(store, 'owner', plantsOf(ids.filter(hasPlant)))
    await Promise.all(
      plantsOf(ids).map((plant) => {
        if (isExpected(plant.id)) return assertCreate(store, 'owner', plant, !hasPlant(plant.id))
        return assertDelete(store, 'owner', plant.id, hasPlant(plant.id))
      }),
    )
    await assertList(store, 'owner', plantsOf(ids.filter(isExpected)))
  },

  async 'separates owners in concurrent operations'(store) {
    const owners = Array.from({ length: 50 }, (_, i) => `owner ${i}`)
    await Promise.all(owners.map((owner) => createAll(store, owner, plantsOfOwner(owner))))
    await Promise.all(owners.map((owner) => assertList(store, owner, plantsOfOwner(owner))))
    await Promise.all(owners.map((owner, i) => assertDelete(store, owner, i % 2 === 0 ? 1n : 11n)))
    await Promise.all(owners.map((owner, i) => assertList(store, owner, plantsOfOwner(owner).toSpliced(i % 2, 1))))
  },

  async 'returns the right page for each of 100 concurrent lists'(store) {
    const plants = plantsOf(idsBelow(50))
    await createAll(store, 'owner', plants)
    await Promise.all(
      plants.flatMap(({ id: after }, i) =>
        [3, 7].map((limit) => assertList(store, 'owner', plants.slice(i + 1), { limit, after })),
      ),
    )
  },

  async 'lists the result of every completed write while other lists are running'(store) {
    const plants = plantsOf(idsBelow(20))
    const list = () => store.list('owner', { limit: MAX_PAGE, maxBytes: UNLIMITED_BYTES })
    const assertListed = async (write: () => Promise<void>, expected: readonly NewPlant[]): Promise<void> => {
      await Promise.all([list(), write().then(() => assertList(store, 'owner', expected))])
    }
    let isDone = false
    // A write might outlast the list that was started alongside it, so keep starting lists until all writes are done.
    const listContinuously = async (): Promise<void> => {
      while (!isDone) await Promise.all([list(), yieldToEventLoop()])
    }
    const createAndDelete = async (): Promise<void> => {
      for (const [i, plant] of plants.entries()) {
        await assertListed(() => assertCreate(store, 'owner', plant), plants.slice(0, i + 1))
      }
      for (const [i, { id }] of plants.entries()) {
        await assertListed(() => assertDelete(store, 'owner', id), plants.slice(i + 1))
      }
    }
    await Promise.all([listContinuously(), createAndDelete().finally(() => (isDone = true))])
  },

  'ping succeeds, if the store implements ping': (store) => store.ping(),

  async 'close can be called twice'(store) {
    await createAll(store, 'owner', plantsOf([1n]))
    // The second call is made when the test ends, because every test closes its store.
    await store.close()
  },
}

async function compareWithMap(store: TestedStore, seed: number): Promise<void> {
  const random = createSeededRandom(seed)
  const pick = <T>(choices: readonly T[]): T => choices[random(choices.length)] as T
  const owners = ['a', 'b', 'ab'].map((owner) => ({ owner, plants: new Map<bigint, NewPlant>() }))

  for (let step = 1; step <= 2000; step++) {
    const { owner, plants } = pick(owners)
    const runOperation = pick([create, remove, list])
    try {
      await runOperation(owner, plants, pick(EDGE_CASE_IDS))
    } catch (cause) {
      throw new Error(`Step ${step} (seed ${seed}): ${(cause as Error).message}`, { cause })
    }
  }

  async function create(owner: string, plants: Map<bigint, NewPlant>, id: bigint): Promise<void> {
    const plant = { id, name: pick(EDGE_CASE_TEXTS), tag: pick([undefined, ...EDGE_CASE_TEXTS]) }
    await assertCreate(store, owner, plant, !plants.has(id))
    if (!plants.has(id)) plants.set(id, plant)
  }

  function remove(owner: string, plants: Map<bigint, NewPlant>, id: bigint): Promise<void> {
    return assertDelete(store, owner, id, plants.delete(id))
  }

  function list(owner: string, plants: Map<bigint, NewPlant>, after: bigint): Promise<void> {
    const limit = 1 + random(10)
    const plantsAfter = EDGE_CASE_IDS.filter((id) => id > after).flatMap((id) => plants.get(id) ?? [])
    return assertList(store, owner, plantsAfter, { limit, after })
  }
}

function createSeededRandom(seed: number): (bound: number) => number {
  let state = seed
  return (bound) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0
    return Math.floor((state / 2 ** 32) * bound)
  }
}
