import { MIN_INT64 } from '../plants/int64.ts'
import type { NewPlant } from '../plants/plant.ts'
import { MAX_PAGE } from '../plants/store.ts'
import { AWKWARD_IDS, AWKWARD_OWNERS, AWKWARD_TEXTS, everyCharacter, LONG_TEXTS } from './awkward-values.ts'
import { compareWithMap } from './compare-with-map.ts'
import { CONCURRENT_CHECKS } from './concurrent-checks.ts'
import { assertCreate, assertDelete, assertKept, assertList, assertPages, createAll, plantsOf } from './steps.ts'
import type { Check } from './watched-store.ts'

/** The duties of a store, each a test of its own on a store without plants. */
export const CHECKS: Readonly<Record<string, Check>> = {
  async 'keeps a plant with its id, name and tag'(store) {
    await assertKept(store, [{ id: 42n, name: 'Monstera', tag: 'tropical' }])
  },

  async 'lists nothing for an owner who has no plants'(store) {
    await createAll(store, 'owner', plantsOf([1n]))
    await assertList(store, 'another', [])
  },

  async 'keeps an absent tag absent and an empty tag empty'(store) {
    const fern = { id: 1n, name: 'Fern' }
    await assertKept(store, [fern, { ...fern, id: 2n, tag: '' }, { ...fern, id: 3n, tag: undefined }])
  },

  async 'returns false if the id is taken, and keeps the first plant'(store) {
    const plants = [
      { id: 1n, name: 'first' },
      { id: 2n, name: 'first', tag: 'first' },
    ]
    await createAll(store, 'owner', plants)
    await assertCreate(store, 'owner', { id: 1n, name: 'second', tag: 'second' }, false)
    await assertCreate(store, 'owner', { id: 2n, name: 'second' }, false)
    await assertList(store, 'owner', plants)
  },

  async 'deletes a plant, and only that one'(store) {
    await createAll(store, 'owner', plantsOf([1n, 2n, 3n]))
    await assertDelete(store, 'owner', 2n)
    await assertList(store, 'owner', plantsOf([1n, 3n]))
  },

  async 'returns false if there is nothing to delete'(store) {
    await assertDelete(store, 'owner', 1n, false)
    await createAll(store, 'owner', plantsOf([1n]))
    await assertDelete(store, 'owner', 2n, false)
    await assertDelete(store, 'owner', 1n)
    await assertDelete(store, 'owner', 1n, false)
  },

  async 'takes an id anew once its plant is deleted'(store) {
    await createAll(store, 'owner', [{ id: 1n, name: 'first', tag: 'first' }])
    await assertDelete(store, 'owner', 1n)
    await assertCreate(store, 'owner', { id: 1n, name: 'second' })
    await assertList(store, 'owner', [{ id: 1n, name: 'second' }])
  },

  async 'keeps owners apart, whatever their names'(store) {
    const plantsOfOwner = (owner: string): NewPlant[] => [1n, 11n].map((id) => ({ id, name: owner }))
    for (const owner of AWKWARD_OWNERS) await createAll(store, owner, plantsOfOwner(owner))
    for (const owner of AWKWARD_OWNERS) await assertList(store, owner, plantsOfOwner(owner))
  },

  async 'deletes no plant of another owner'(store) {
    for (const owner of AWKWARD_OWNERS) await createAll(store, owner, plantsOf([1n, 2n]))
    await assertDelete(store, 'another', 1n, false)
    for (const owner of AWKWARD_OWNERS) await assertDelete(store, owner, 1n)
    // Backwards too: a store may delete the plant of another owner only if that one comes first, and still has it.
    for (const owner of AWKWARD_OWNERS.toReversed()) {
      await assertDelete(store, owner, 2n)
      await assertList(store, owner, [])
    }
  },

  async 'keeps ids exact over the whole of int64'(store) {
    await createAll(store, 'owner', plantsOf(AWKWARD_IDS))
    for (const [index, id] of AWKWARD_IDS.entries()) {
      await assertList(store, 'owner', plantsOf(AWKWARD_IDS.slice(index)))
      await assertDelete(store, 'owner', id)
    }
  },

  async 'lists plants ascending by id, in whatever order they came'(store) {
    const left = plantsOf(AWKWARD_IDS)
    while (left.length > 0) await createAll(store, 'owner', [...left.splice(0, 1), ...left.splice(-1)])
    await assertList(store, 'owner', plantsOf(AWKWARD_IDS))
  },

  async 'lists at most as many plants as the limit says'(store) {
    const plants = plantsOf(Array.from({ length: MAX_PAGE + 1 }, (_, i) => BigInt(i)))
    await Promise.all(plants.map((plant) => assertCreate(store, 'owner', plant)))
    for (const limit of [1, 2, MAX_PAGE - 1, MAX_PAGE]) {
      await assertList(store, 'owner', plants.slice(0, limit), { limit })
    }
  },

  async 'ends a page before its limit only once names and tags come to maxBytes'(store) {
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
    await createAll(store, 'owner', plantsOf(AWKWARD_IDS))
    for (const after of [...AWKWARD_IDS, -50n, 2n, 50n, 2n ** 52n, 2n ** 62n]) {
      const greater = AWKWARD_IDS.filter((id) => id > after)
      await assertList(store, 'owner', plantsOf(greater), { limit: MAX_PAGE, after })
    }
    await assertList(store, 'owner', plantsOf([1n, 3n]), { limit: 2, after: 0n })
  },

  async 'gives each plant once, page by page, while others come and go'(store) {
    const ids = new Set(Array.from({ length: 100 }, (_, i) => BigInt(i * 10)))
    await createAll(store, 'owner', plantsOf([...ids]))
    let after = MIN_INT64
    for (const limit of [7, 1, 20, 3, 7, MAX_PAGE]) {
      const page = [...ids]
        .filter((id) => id > after)
        .sort((a, b) => Number(a - b))
        .slice(0, limit)
      await assertList(store, 'owner', plantsOf(page), { limit, after })
      after = page.at(-1)!
      for (const plant of plantsOf([after - 5n, after + 5n])) {
        await assertCreate(store, 'owner', plant, !ids.has(plant.id))
        ids.add(plant.id)
      }
      // The plant at the cursor goes too: the next page starts after its id all the same.
      for (const id of [after, after - 10n, after + 10n]) {
        await assertDelete(store, 'owner', id, ids.delete(id))
      }
    }
  },

  async 'keeps names and tags to the letter'(store) {
    const plants = AWKWARD_TEXTS.map((text, i) => ({ id: BigInt(i), name: text, tag: text }))
    await assertKept(store, plants)
  },

  async 'keeps every character of Unicode but U+0000'(store) {
    const plants = everyCharacter().map((text, i) => ({ id: BigInt(i), name: text }))
    await assertKept(store, plants)
  },

  async 'keeps names and tags of 64 KiB'(store) {
    const plants = LONG_TEXTS.map((text, i) => ({ id: BigInt(i), name: text, tag: text }))
    await assertKept(store, plants)
  },

  'does what a Map does, through 2,000 random operations': compareWithMap,

  ...CONCURRENT_CHECKS,

  async 'settles a ping, if it takes one'(store) {
    await store.ping()
  },

  async 'may be closed twice'(store) {
    await createAll(store, 'owner', plantsOf([1n]))
    // The second time is that at the end of each test.
    await store.close()
  },
}
