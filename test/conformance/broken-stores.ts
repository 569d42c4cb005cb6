import assert from 'node:assert/strict'
import { setImmediate as nextTick } from 'node:timers/promises'
import type { NewPlant } from '../../src/plants/plant.ts'
import { StoreUnavailableError, type Page, type PageRequest, type Store } from '../../src/plants/store.ts'
import { overrideStore } from '../support/database/override-store.ts'

/** A store whose writes can be made to fail. */
export interface BreakableStore extends Store {
  isBroken: boolean
}

/** The simplest store that fulfills the contract. The broken stores are variants of this store. */
export class ReferenceStore implements BreakableStore {
  readonly plants = new Map<string, NewPlant & { owner: string }>()
  isBroken = false

  getKey = (owner: string, id: bigint): string => JSON.stringify([owner, String(id)])

  create(owner: string, plant: NewPlant): boolean {
    this.requireWritable()
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
    this.requireWritable()
    return this.plants.delete(this.getKey(owner, id))
  }

  has(owner: string, id: bigint): boolean {
    return this.plants.has(this.getKey(owner, id))
  }

  requireWritable(): void {
    if (this.isBroken) throw new StoreUnavailableError('The store is broken')
  }
}

/** Returns the methods to override in the given reference store. */
export type StoreChange = (store: ReferenceStore) => Partial<Store>

export function createBrokenStore(change: StoreChange): BreakableStore {
  const store = new ReferenceStore()
  return overrideStore(store, change(store)) as BreakableStore
}

/** The conformance options that make the writes of a breakable store fail, and work again. */
export const FAILURE_OPTIONS = {
  breakWrites: (store: BreakableStore): void => void (store.isBroken = true),
  restore: (store: BreakableStore): void => void (store.isBroken = false),
} as const

/** Changes plants before they are stored. */
function changeStoredPlant(change: (plant: NewPlant) => NewPlant): StoreChange {
  return (store) => ({ create: (owner, plant) => store.create(owner, change(plant)) })
}

/** Changes names before they are stored. */
function changeStoredName(change: (name: string) => string): StoreChange {
  return changeStoredPlant((plant) => ({ ...plant, name: change(plant.name) }))
}

/** Changes the page that `list` returns. */
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

/** Changes the plants of the page that `list` returns. */
function changeListedPlants(change: (plants: Page['plants']) => unknown): StoreChange {
  return changePage(({ plants, hasMore }) => ({ plants: change(plants), hasMore }))
}

/** Ends a page as soon as the sizes of its plants, according to `bytesOf`, amount to `maxBytes`. */
export function limitPageBytes(bytesOf: (plant: NewPlant) => number): StoreChange {
  return changePage(({ plants, hasMore }, _, { maxBytes }) => {
    let bytes = 0
    const kept = plants.filter((plant) => (bytes += bytesOf(plant)) - bytesOf(plant) < maxBytes)
    return { plants: kept, hasMore: hasMore || kept.length < plants.length }
  })
}

/** Lets concurrent lists with the same key share one read. */
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

const MISSING_PLANT = "didn't return plant"
const WRONG_NAME = 'returned a wrong name for plant'
const UNKNOWN_ID = "this owner doesn't have a plant with this id, and plants of other owners don't count."
const FALSE_FOR_UNKNOWN_ID = `returned false instead of true: ${UNKNOWN_ID}`
const TRUE_FOR_UNKNOWN_ID = `returned true instead of false: ${UNKNOWN_ID}`

type Row = readonly [expectedMessage: string, change: StoreChange]

function createRow(...row: Row): Row {
  return row
}

/** For each conformance test, a store that fails the test, and a part of the expected error message. */
export const BROKEN_STORES: Readonly<Record<string, Row>> = {
  'returns a created plant with its id, name and tag': createRow(
    "returned a plant whose id isn't a bigint: ",
    changeListedPlants((plants) => plants.map((plant) => ({ ...plant, id: Number(plant.id) }))),
  ),
  'returns an empty page for an owner without plants': createRow(
    "returned a plant that the owner doesn't have: ",
    (store) => ({
      list: (_, { limit }) => ({ plants: [...store.plants.values()].slice(0, limit), hasMore: false }),
    }),
  ),
  'distinguishes a missing tag from an empty tag': createRow(
    'returned null as the tag of plant 1n, which has no tag. Omit the tag or return undefined.',
    changeListedPlants((plants) => plants.map((plant) => ({ ...plant, tag: plant.tag ?? null }))),
  ),
  'create returns false for a duplicate id and leaves the first plant unchanged': createRow(
    `${WRONG_NAME} 1n: starting at character 0, "second"… instead of "first"….`,
    (store) => ({
      create(owner, plant) {
        const isNew = store.create(owner, plant)
        store.plants.set(store.getKey(owner, plant.id), { ...plant, owner })
        return isNew
      },
    }),
  ),
  'delete removes only the requested plant': createRow(MISSING_PLANT, (store) => ({
    delete: (owner, id) => store.has(owner, id) && (store.plants.clear(), true),
  })),
  'delete returns false for an unknown id': createRow(TRUE_FOR_UNKNOWN_ID, (store) => ({
    delete: (owner, id) => store.delete(owner, id) || true,
  })),
  'allows reusing the id of a deleted plant': createRow(FALSE_FOR_UNKNOWN_ID, (store) => {
    const used = new Set<bigint>()
    return { create: (owner, plant) => !used.has(plant.id) && (used.add(plant.id), store.create(owner, plant)) }
  }),
  'separates owners with similar names': createRow(
    `create('A', { id: 1n, name: 'A' }) ${FALSE_FOR_UNKNOWN_ID}`,
    (store) => Object.assign(store, { getKey: (owner: string, id: bigint) => `${owner.toLowerCase()} ${id}` }),
  ),
  'never deletes a plant of another owner': createRow(TRUE_FOR_UNKNOWN_ID, (store) => ({
    delete(_, id) {
      const kept = [...store.plants].find(([, plant]) => plant.id === id)
      return kept !== undefined && store.plants.delete(kept[0])
    },
  })),
  'preserves ids exactly across the int64 range': createRow(
    FALSE_FOR_UNKNOWN_ID,
    changeStoredPlant((plant) => ({ ...plant, id: BigInt(Number(plant.id)) })),
  ),
  'lists plants by ascending id, regardless of the insertion order': createRow(
    'Plants must be sorted by ascending id, without duplicates.',
    changeListedPlants((plants) => plants.toSorted((a, b) => (String(a.id) < String(b.id) ? -1 : 1))),
  ),
  'lists at most limit plants': createRow(
    'returned 2 plants, although limit is 1.',
    changePage((_, list, request) => list({ ...request, limit: request.limit + 1 })),
  ),
  'ends a page before limit only if its names and tags add up to maxBytes': createRow(
    'ended the page too early: it returned 1 of 30 plants, with 4 bytes of names and tags.',
    limitPageBytes(({ name, tag = '' }) => 8 + Buffer.byteLength(name + tag)),
  ),
  'lists only ids greater than after': createRow(
    "whose id isn't greater than after.",
    changePage((_, list, request) => list({ ...request, after: request.after === 0n ? undefined : request.after })),
  ),
  'lists each plant once across pages while plants are created and deleted': createRow(MISSING_PLANT, (store) => ({
    list(owner, page) {
      const { after = -1n } = page
      return after < 0n || store.has(owner, after) ? store.list(owner, page) : { plants: [], hasMore: false }
    },
  })),
  'preserves names and tags exactly': createRow(
    WRONG_NAME,
    changeStoredName((name) => name.trim()),
  ),
  'preserves every Unicode character except U+0000': createRow(
    WRONG_NAME,
    changeStoredName((name) => name.replace(/[^\0-\uffff]/gu, '\ufffd')),
  ),
  'preserves names and tags of 64 KiB': createRow(
    WRONG_NAME,
    changeStoredName((name) => name.slice(0, 65_535)),
  ),
  'behaves like a Map in 2,000 random operations': createRow(
    `Step 1445 (seed 1): list('ab', { limit: 10, maxBytes: 1073741824, after: -2147483649n }) ${MISSING_PLANT} -2147483648n, which the owner has.`,
    (store) => {
      let lists = 0
      return { list: (owner, page) => (++lists > 500 && store.plants.clear(), store.list(owner, page)) }
    },
  ),
  'lets exactly one of 50 concurrent creates with the same id succeed': createRow(
    '50 of 50 concurrent create calls with the same id returned true. Exactly one must return true, and the others false.',
    (store) => ({
      async create(owner, plant) {
        if (store.has(owner, plant.id)) return false
        await nextTick()
        store.plants.set(store.getKey(owner, plant.id), { ...plant, owner })
        return true
      },
    }),
  ),
  'lets exactly one of 50 concurrent deletes of a plant succeed': createRow(
    '50 of 50 concurrent delete calls with the same id returned true. Exactly one must return true, and the others false.',
    (store) => ({
      async delete(owner, id) {
        if (!store.has(owner, id)) return false
        await nextTick()
        store.delete(owner, id)
        return true
      },
    }),
  ),
  'returns the right result for each of 300 concurrent creates and deletes': createRow(
    FALSE_FOR_UNKNOWN_ID,
    (store) => {
      let last = false
      async function returnLast(result: boolean): Promise<boolean> {
        last = result
        await nextTick()
        return last
      }
      return {
        create: (owner, plant) => returnLast(store.create(owner, plant)),
        delete: (owner, id) => returnLast(store.delete(owner, id)),
      }
    },
  ),
  'separates owners in concurrent operations': createRow(
    'returned false instead of true: this owner has a plant with this id.',
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
  'returns the right page for each of 100 concurrent lists': createRow(
    MISSING_PLANT,
    shareReads((owner, { after }) => `${owner} ${after}`),
  ),
  'lists the result of every completed write while other lists are running': createRow(
    `${MISSING_PLANT} 0n, which the owner has.`,
    shareReads((owner, { limit, after }) => `${owner} ${limit} ${after}`),
  ),
  'ping succeeds, if the store implements ping': createRow('ping() failed: Error: Out of reach', () => ({
    ping: () => Promise.reject(new Error('Out of reach')),
  })),
  'close can be called twice': createRow('close() failed: AssertionError [ERR_ASSERTION]: Closed already', () => {
    let closes = 0
    return { close: () => assert.equal(++closes, 1, 'Closed already') }
  }),
  'stores no plants when creates fail': createRow("returned a plant that the owner doesn't have", (store) => ({
    create(owner, plant) {
      if (store.isBroken) store.plants.set(store.getKey(owner, plant.id), { ...plant, owner })
      return store.create(owner, plant)
    },
  })),
  'keeps the plants when deletes fail': createRow(MISSING_PLANT, (store) => ({
    delete(owner, id) {
      if (store.isBroken) store.plants.delete(store.getKey(owner, id))
      return store.delete(owner, id)
    },
  })),
  'ping rejects while writes fail, if the store implements ping': createRow(
    'ping() succeeded, although writes fail. It must reject.',
    () => ({ ping: () => undefined }),
  ),
}
