import { setImmediate as nextTick } from 'node:timers/promises'
import type { NewPlant } from '../../src/plants/plant.ts'
import { StoreUnavailableError, type Page, type PageRequest, type Store } from '../../src/plants/store.ts'

/** The simplest store that meets the requirements. The broken stores are variants of it. */
export class ReferenceStore implements Store {
  readonly plants = new Map<string, NewPlant & { owner: string }>()
  isBroken = false

  getKey = (owner: string, id: bigint): string => JSON.stringify([owner, String(id)])

  create(owner: string, plant: NewPlant): boolean | Promise<boolean> {
    this.requireWritable()
    if (this.has(owner, plant.id)) return false
    this.plants.set(this.getKey(owner, plant.id), { ...plant, owner })
    return true
  }

  list(owner: string, { limit, after }: PageRequest): Page | Promise<Page> {
    const plants = [...this.plants.values()]
      .filter((plant) => plant.owner === owner && (after === undefined || plant.id > after))
      .sort((a, b) => (a.id < b.id ? -1 : 1))
    return { plants: plants.slice(0, limit), hasMore: plants.length > limit }
  }

  delete(owner: string, id: bigint): boolean | Promise<boolean> {
    this.requireWritable()
    return this.plants.delete(this.getKey(owner, id))
  }

  has(owner: string, id: bigint): boolean {
    return this.plants.has(this.getKey(owner, id))
  }

  requireWritable(): void {
    if (this.isBroken) throw new StoreUnavailableError('The store is broken.')
  }
}

type Change = (store: ReferenceStore) => Partial<Store>

/** Overrides methods of a reference store. */
export function createVariant(change: Change = () => ({})): ReferenceStore & Store {
  const store = new ReferenceStore()
  return Object.assign(Object.create(store) as ReferenceStore, change(store))
}

const changeStored =
  (change: (plant: NewPlant) => NewPlant): Change =>
  (store) => ({ create: (owner, plant) => store.create(owner, change(plant)) })

const changePage =
  (change: (page: Page, request: PageRequest, list: (request: PageRequest) => Page) => unknown): Change =>
  (store) => ({
    list(owner, request) {
      const list = (other: PageRequest): Page => store.list(owner, other) as Page
      return change(list(request), request, list) as Page
    },
  })

const changePlants = (change: (plants: Page['plants']) => unknown): Change =>
  changePage((page) => ({ ...page, plants: change(page.plants) }))

/** Ends a page once its plants have the given number of bytes each. */
export const limitBytes = (bytesOf: (plant: NewPlant) => number): Change =>
  changePage(({ plants, hasMore }, { maxBytes }) => {
    let bytes = 0
    const kept = plants.filter((plant) => (bytes += bytesOf(plant)) - bytesOf(plant) < maxBytes)
    return { plants: kept, hasMore: hasMore || kept.length < plants.length }
  })

const BROKEN_STORES: Readonly<Record<string, readonly (readonly [message: string, change: Change])[]>> = {
  'returns created plants with their id, name and tag, or without a tag': [
    [
      "returned { id: 1, name: 'Fern', … } instead of { id: 1n, name: 'Fern', … }.",
      changePlants((plants) => plants.map((plant) => ({ ...plant, id: Number(plant.id) }))),
    ],
    [
      "returned { id: 1n, name: 'Fern', tag: null… } instead of { id: 1n, name: 'Fern', tag: undefined… }.",
      changePlants((plants) => plants.map((plant) => ({ ...plant, tag: plant.tag ?? null }))),
    ],
  ],
  'create and delete return false if they change nothing': [
    [
      "delete('owner', 2n) returned true, although the owner has no plant with this id (those of other owners don't count).",
      (store) => ({ delete: async (owner, id) => (await store.delete(owner, id)) || true }),
    ],
    [
      "returned { id: 2n, name: 'second', … } instead of { id: 2n, name: 'name 2', … }.",
      (store) => ({
        create(owner, plant) {
          const isNew = store.create(owner, plant)
          store.plants.set(store.getKey(owner, plant.id), { ...plant, owner })
          return isNew
        },
      }),
    ],
    [
      "didn't return { id: 1n, name: 'name 1', … }, which the owner has.",
      (store) => ({ delete: (owner, id) => store.has(owner, id) && (store.plants.clear(), true) }),
    ],
  ],
  'separates owners with similar names': [
    [
      "create('A', { id: 0n, name: 'A', … }) returned false, although",
      (store) => Object.assign(store, { getKey: (owner: string, id: bigint) => `${owner.toLowerCase()} ${id}` }),
    ],
    [
      "delete('another', 0n) returned true, although",
      (store) => ({
        delete(_, id) {
          const kept = [...store.plants].find(([, plant]) => plant.id === id)
          return kept !== undefined && store.plants.delete(kept[0])
        },
      }),
    ],
  ],
  'preserves ids exactly, and lists them in ascending order': [
    ['returned false, although the owner has no plant', changeStored((p) => ({ ...p, id: BigInt(Number(p.id)) }))],
    ['instead of', changePlants((plants) => plants.toSorted((a, b) => (String(a.id) < String(b.id) ? -1 : 1)))],
  ],
  'lists at most limit plants': [
    [
      'returned 2 plants, although limit is 1.',
      changePage((_, request, list) => list({ ...request, limit: request.limit + 1 })),
    ],
    ['returned hasMore: false instead of true.', changePage((page) => ({ ...page, hasMore: false }))],
    ['returned hasMore: undefined instead of true.', changePage(({ plants }) => ({ plants }))],
    ['returned undefined instead of an object with a plants array.', changePage(() => undefined)],
  ],
  'ends a page before limit only if its strings add up to maxBytes': [
    ["didn't return", limitBytes(({ name, tag = '' }) => 8 + Buffer.byteLength(name + tag))],
  ],
  'preserves strings exactly': [
    ["instead of { id: 2n, name: ' \\t fern \\t ', tag:", changeStored((p) => ({ ...p, name: p.name.trim() }))],
    ['instead of', changeStored((p) => ({ ...p, name: p.name.replace(/[^\0-\uffff]/gu, '\ufffd') }))],
    ['65475 more characters, … } instead of', changeStored((p) => ({ ...p, name: p.name.slice(0, 65_535) }))],
  ],
  'behaves like a Map in 1,000 random operations': [
    [
      "didn't return",
      (store) => {
        let lists = 0
        return { list: (owner, page) => (++lists > 200 && store.plants.clear(), store.list(owner, page)) }
      },
    ],
  ],
  'lets exactly one of 50 concurrent calls with the same id succeed': [
    [
      '50 of 50 concurrent create calls with the same id returned true, not one.',
      (store) => ({
        async create(owner, plant) {
          if (store.has(owner, plant.id)) return false
          await nextTick()
          await store.create(owner, plant)
          return true
        },
      }),
    ],
    [
      '50 of 50 concurrent delete calls with the same id returned true, not one.',
      (store) => ({
        async delete(owner, id) {
          if (!store.has(owner, id)) return false
          await nextTick()
          await store.delete(owner, id)
          return true
        },
      }),
    ],
  ],
  'returns the right result for each of 300 concurrent calls of 10 owners': [
    [
      'although the owner has',
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
    ],
  ],
  'lists the result of every completed write while other lists are running': [
    [
      "didn't return { id: 0n, name: 'name 0', … }, which the owner has.",
      (store) => {
        let pending: Promise<Page> | undefined
        return {
          list: (...args) => (pending ??= nextTick(store.list(...args) as Page).finally(() => (pending = undefined))),
        }
      },
    ],
  ],
  'ping succeeds, if the store implements ping': [
    ['ping() failed: Error: Out of reach', () => ({ ping: () => Promise.reject(new Error('Out of reach')) })],
  ],
  'close can be called twice': [
    [
      'close() failed: Error: Closed already',
      () => {
        let closes = 0
        return { close: () => (++closes > 1 ? Promise.reject(new Error('Closed already')) : undefined) }
      },
    ],
  ],
  'changes nothing while writes fail, and ping rejects, if the store implements ping': [
    ['ping() must reject while writes fail.', () => ({ ping: () => undefined })],
    [
      "returned { id: 20n, name: 'name 20', … }, which the owner doesn't have.",
      (store) => ({
        create(owner, plant) {
          if (store.isBroken) store.plants.set(store.getKey(owner, plant.id), { ...plant, owner })
          return store.create(owner, plant)
        },
      }),
    ],
    [
      "didn't return { id: 0n, name: 'name 0', … }, which the owner has.",
      (store) => ({
        delete(owner, id) {
          if (store.isBroken) store.plants.delete(store.getKey(owner, id))
          return store.delete(owner, id)
        },
      }),
    ],
    [
      "A write of { id: 20n, name: 'name 20', … } returned true after breakWrites.",
      (store) => ({ create: (...args) => store.isBroken || store.create(...args) }),
    ],
    [
      'failed: Error: disk full (not a StoreUnavailableError)',
      (store) => ({
        create: (...args) => (store.isBroken ? Promise.reject(new Error('disk full')) : store.create(...args)),
      }),
    ],
  ],
}

/** Returns for each conformance test stores that fail it, with parts of the expected message, separated by `…`. */
export const getBrokenStores = (): typeof BROKEN_STORES => BROKEN_STORES
