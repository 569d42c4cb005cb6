import assert from 'node:assert/strict'
import { setImmediate as nextTick } from 'node:timers/promises'
import type { NewPlant } from '../../src/plants/plant.ts'
import type { Page, PageRequest, Store } from '../../src/plants/store.ts'
import { overrideStore } from '../support/database/override-store.ts'

/** The simplest store that keeps the contract, for others to break. */
export class ReferenceStore implements Store {
  readonly plants = new Map<string, NewPlant & { owner: string }>()

  getKey = (owner: string, id: bigint): string => JSON.stringify([owner, String(id)])

  create(owner: string, plant: NewPlant): boolean {
    if (this.has(owner, plant.id)) return false
    this.plants.set(this.getKey(owner, plant.id), { ...plant, owner })
    return true
  }

  list(owner: string, { limit, after }: PageRequest): Page {
    const plants = [...this.plants.values()]
      .filter((plant) => plant.owner === owner && (after === undefined || plant.id > after))
      .sort((a, b) => (a.id < b.id ? -1 : 1))
    return { plants: plants.slice(0, limit), hasMore: plants.length > limit }
  }

  delete(owner: string, id: bigint): boolean {
    return this.plants.delete(this.getKey(owner, id))
  }

  has(owner: string, id: bigint): boolean {
    return this.plants.has(this.getKey(owner, id))
  }
}

/** What a store does in another way than the simplest one, which it is given. */
export type StoreChange = (store: ReferenceStore) => Partial<Store>

export function createBrokenStore(change: StoreChange): Store {
  const store = new ReferenceStore()
  return overrideStore(store, change(store))
}

/** One that changes what it keeps of a plant. */
function changeStoredPlant(change: (plant: NewPlant) => NewPlant): StoreChange {
  return (store) => ({ create: (owner, plant) => store.create(owner, change(plant)) })
}

/** One that changes what it keeps of a plant's name. */
function changeStoredName(change: (name: string) => string): StoreChange {
  return changeStoredPlant((plant) => ({ ...plant, name: change(plant.name) }))
}

/** Changes the page that is returned for a request. */
function changePage(
  change: (page: Page, list: (request: PageRequest) => Page, request: PageRequest) => unknown,
): StoreChange {
  return (store) => ({
    list(owner, request) {
      const list = (other: PageRequest): Page => store.list(owner, other)
      return change(list(request), list, request) as Page
    },
  })
}

/** Changes the plants that are listed. */
function changeListedPlants(change: (plants: Page['plants']) => unknown): StoreChange {
  return changePage(({ plants, hasMore }) => ({ plants: change(plants), hasMore }))
}

/** One that ends a page as soon as it may, by the bytes that it counts of a plant. */
export function limitPageBytes(bytesOf: (plant: NewPlant) => number): StoreChange {
  return changePage(({ plants, hasMore }, _, { maxBytes }) => {
    let bytes = 0
    const kept = plants.filter((plant) => (bytes += bytesOf(plant)) - bytesOf(plant) < maxBytes)
    return { plants: kept, hasMore: hasMore || kept.length < plants.length }
  })
}

/** One whose lists share one read if their keys are the same, and it is under way. */
function shareReads(keyOf: (owner: string, page: PageRequest) => string): StoreChange {
  return (store) => {
    const pendingReads = new Map<string, Promise<Page>>()
    return {
      list(owner, page) {
        const key = keyOf(owner, page)
        const plants = store.list(owner, page)
        const shared = pendingReads.get(key) ?? nextTick(plants).finally(() => pendingReads.delete(key))
        pendingReads.set(key, shared)
        return shared
      },
    }
  }
}

const RETURN_EVERY_PLANT = 'must return every plant of the owner that is asked for.'
const RETURN_EXACT_NAMES = 'must return names to the letter.'
const RETURN_TRUE = 'must return true: this owner has no plant with this id, whatever others have.'
const RETURN_FALSE = 'must return false: this owner has no plant with this id, whatever others have.'

type Row = readonly [says: string, change: StoreChange]

function createRow(...row: Row): Row {
  return row
}

/** For each test of the suite how it says that a store fails, and what is wrong with that store. */
export const BROKEN_STORES: Readonly<Record<string, Row>> = {
  'keeps a plant with its id, name and tag': createRow(
    'must return plants whose id is a bigint.',
    changeListedPlants((plants) => plants.map((plant) => ({ ...plant, id: Number(plant.id) }))),
  ),
  'lists nothing for an owner who has no plants': createRow('must return only plants that the owner has.', (store) => ({
    list: (_, { limit }) => ({ plants: [...store.plants.values()].slice(0, limit), hasMore: false }),
  })),
  'keeps an absent tag absent and an empty tag empty': createRow(
    'must return no tag, or undefined, if the plant has none.',
    changeListedPlants((plants) => plants.map((plant) => ({ ...plant, tag: plant.tag ?? null }))),
  ),
  'returns false if the id is taken, and keeps the first plant': createRow(
    `${RETURN_EXACT_NAMES} From character 0 on, that of 1n is "second"…, and must be "first"….`,
    (store) => ({
      create(owner, plant) {
        const isNew = store.create(owner, plant)
        store.plants.set(store.getKey(owner, plant.id), { ...plant, owner })
        return isNew
      },
    }),
  ),
  'deletes a plant, and only that one': createRow(RETURN_EVERY_PLANT, (store) => ({
    delete: (owner, id) => store.has(owner, id) && (store.plants.clear(), true),
  })),
  'returns false if there is nothing to delete': createRow(RETURN_FALSE, (store) => ({
    delete: (owner, id) => store.delete(owner, id) || true,
  })),
  'takes an id anew once its plant is deleted': createRow(RETURN_TRUE, (store) => {
    const used = new Set<bigint>()
    return { create: (owner, plant) => !used.has(plant.id) && (used.add(plant.id), store.create(owner, plant)) }
  }),
  'keeps owners apart, whatever their names': createRow(
    // As docs/stores.md shows.
    `create('A', { id: 1n, name: 'A' }) ${RETURN_TRUE} It returned false.`,
    (store) => Object.assign(store, { getKey: (owner: string, id: bigint) => `${owner.toLowerCase()} ${id}` }),
  ),
  'deletes no plant of another owner': createRow(RETURN_FALSE, (store) => ({
    delete(_, id) {
      const kept = [...store.plants].find(([, plant]) => plant.id === id)
      return kept !== undefined && store.plants.delete(kept[0])
    },
  })),
  'keeps ids exact over the whole of int64': createRow(
    RETURN_TRUE,
    changeStoredPlant((plant) => ({ ...plant, id: BigInt(Number(plant.id)) })),
  ),
  'lists plants ascending by id, in whatever order they came': createRow(
    'must return plants ascending by id, each once.',
    changeListedPlants((plants) => plants.toSorted((a, b) => (String(a.id) < String(b.id) ? -1 : 1))),
  ),
  'lists at most as many plants as the limit says': createRow(
    'must return at most limit plants: 1. It returned 2.',
    changePage((_, list, request) => list({ ...request, limit: request.limit + 1 })),
  ),
  'ends a page before its limit only once names and tags come to maxBytes': createRow(
    'must go on to limit plants or to maxBytes bytes of names and tags, and to one plant at least.',
    limitPageBytes(({ name, tag = '' }) => 8 + Buffer.byteLength(name + tag)),
  ),
  'lists only ids greater than after': createRow(
    'must return only ids greater than after.',
    changePage((_, list, request) => list({ ...request, after: request.after === 0n ? undefined : request.after })),
  ),
  'gives each plant once, page by page, while others come and go': createRow(RETURN_EVERY_PLANT, (store) => ({
    list(owner, page) {
      const { after = -1n } = page
      return after < 0n || store.has(owner, after) ? store.list(owner, page) : { plants: [], hasMore: false }
    },
  })),
  'keeps names and tags to the letter': createRow(
    RETURN_EXACT_NAMES,
    changeStoredName((name) => name.trim()),
  ),
  'keeps every character of Unicode but U+0000': createRow(
    RETURN_EXACT_NAMES,
    changeStoredName((name) => name.replace(/[^\0-\uffff]/gu, '\ufffd')),
  ),
  'keeps names and tags of 64 KiB': createRow(
    RETURN_EXACT_NAMES,
    changeStoredName((name) => name.slice(0, 65_535)),
  ),
  'does what a Map does, through 2,000 random operations': createRow(
    `Step 1445 with seed 1: list('ab', { limit: 10, maxBytes: 1073741824, after: -2147483649n }) ${RETURN_EVERY_PLANT} -2147483648n is missing.`,
    (store) => {
      let lists = 0
      return { list: (owner, page) => (++lists > 500 && store.plants.clear(), store.list(owner, page)) }
    },
  ),
  'creates an id once, however many ask at the same time': createRow(
    'Of 50 calls of create for one id at the same time, one must return true and the others false. 50 returned true.',
    (store) => ({
      async create(owner, plant) {
        if (store.has(owner, plant.id)) return false
        await nextTick()
        store.plants.set(store.getKey(owner, plant.id), { ...plant, owner })
        return true
      },
    }),
  ),
  'deletes a plant once, however many ask at the same time': createRow(
    'Of 50 calls of delete for one id at the same time, one must return true and the others false. 50 returned true.',
    (store) => ({
      async delete(owner, id) {
        if (!store.has(owner, id)) return false
        await nextTick()
        store.delete(owner, id)
        return true
      },
    }),
  ),
  'gives each of many operations at the same time its own result': createRow(RETURN_TRUE, (store) => {
    let last = false
    async function together(answer: boolean): Promise<boolean> {
      last = answer
      await nextTick()
      return last
    }
    return {
      create: (owner, plant) => together(store.create(owner, plant)),
      delete: (owner, id) => together(store.delete(owner, id)),
    }
  }),
  'keeps owners apart that ask at the same time': createRow(
    'must return true: this owner has a plant with this id.',
    (store) => {
      let waiting: string | undefined
      return {
        async delete(owner, id) {
          const first = (waiting ??= owner)
          await nextTick()
          waiting = undefined
          return store.delete(first, id)
        },
      }
    },
  ),
  'gives each of many lists at the same time its own page': createRow(
    RETURN_EVERY_PLANT,
    shareReads((owner, { after }) => `${owner} ${after}`),
  ),
  'lists what was created and deleted before, while others list too': createRow(
    `${RETURN_EVERY_PLANT} 0n is missing.`,
    shareReads((owner, { limit, after }) => `${owner} ${limit} ${after}`),
  ),
  'settles a ping, if it takes one': createRow('ping() must not fail. It failed with Error: Out of reach', () => ({
    ping: () => Promise.reject(new Error('Out of reach')),
  })),
  'may be closed twice': createRow(
    'close() must not fail. It failed with AssertionError [ERR_ASSERTION]: Closed already',
    () => {
      let closes = 0
      return { close: () => assert.equal(++closes, 1, 'Closed already') }
    },
  ),
}
