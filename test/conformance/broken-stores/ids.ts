import type { NewPlant } from '../../../src/plants/plant.ts'
import type { PageRequest } from '../../../src/plants/store.ts'
import { ascendingBy, keeping, keyedBy, listing, SortingStore, type BrokenStore } from './sorting-store.ts'

/** Stores that get ids or their order wrong. */
export const WRONG_IDS: readonly BrokenStore[] = [
  {
    breaks: 'rounds ids through a double',
    Store: keeping(({ id, ...rest }) => ({ id: BigInt(Number(id)), ...rest })),
    fails: 'keeps ids exact over the whole of int64',
    says: 'must return true: this owner has no plant with this id, whatever others have.',
  },
  {
    breaks: 'lists ids rounded through a double',
    Store: listing((list, page) => list(page).map((plant) => ({ ...plant, id: BigInt(Number(plant.id)) }))),
    fails: 'keeps ids exact over the whole of int64',
    says: 'must return plants ascending by id, each once.',
  },
  {
    breaks: 'cannot delete beyond 2^53',
    Store: keyedBy((owner, id) => JSON.stringify([owner, Number(id)])),
    fails: 'keeps ids exact over the whole of int64',
    says: 'must return true: this owner has no plant with this id, whatever others have.',
  },
  {
    breaks: 'lists ids as numbers',
    Store: listing((list, page) => list(page).map((plant) => ({ ...plant, id: Number(plant.id) }))),
    fails: 'keeps a plant with its id, name and tag',
    says: 'must return plants whose id is a bigint.',
  },
  {
    breaks: 'lists an iterator',
    Store: listing((list, page) => list(page).values()),
    fails: 'keeps a plant with its id, name and tag',
    says: 'must return an array.',
  },
  {
    breaks: 'lists in the order in which plants came',
    Store: class extends SortingStore {
      override list(owner: string): readonly NewPlant[] {
        return [...this.plants.values()].filter((plant) => plant.owner === owner)
      }
    },
    fails: 'lists plants ascending by id, in whatever order they came',
    says: 'must return plants ascending by id, each once.',
  },
  {
    breaks: "lists in the order of the ids' text",
    Store: listing((list, page) => list(page).toSorted(ascendingBy((plant) => String(plant.id)))),
    fails: 'lists plants ascending by id, in whatever order they came',
    says: 'must return plants ascending by id, each once.',
  },
  {
    breaks: 'lists in the order of the ids as uint64',
    Store: listing((list, page) => list(page).toSorted(ascendingBy((plant) => BigInt.asUintN(64, plant.id)))),
    fails: 'lists plants ascending by id, in whatever order they came',
    says: 'must return plants ascending by id, each once.',
  },
  {
    breaks: 'sorts its plants the first time that one comes out of order, and never again',
    Store: class extends SortingStore {
      #isSorted = false

      override create(owner: string, plant: NewPlant): boolean | Promise<boolean> {
        const last = [...this.plants.values()].at(-1)
        const result = super.create(owner, plant)
        if (last !== undefined && last.id > plant.id && !this.#isSorted) {
          this.#isSorted = true
          const sorted = [...this.plants].sort(([, a], [, b]) => (a.id < b.id ? -1 : 1))
          this.plants.clear()
          for (const [key, kept] of sorted) this.plants.set(key, kept)
        }
        return result
      }

      override list(owner: string): readonly NewPlant[] {
        return [...this.plants.values()].filter((plant) => plant.owner === owner)
      }
    },
    fails: 'lists plants ascending by id, in whatever order they came',
    says: 'must return plants ascending by id, each once.',
  },
  {
    breaks: 'sorts the ids, and leaves the names as they came',
    Store: class extends SortingStore {
      override list(owner: string, page: PageRequest): readonly NewPlant[] {
        const names = [...this.plants.values()].map(({ name }) => name)
        return super.list(owner, page).map((plant, i) => ({ ...plant, name: names[i]! }))
      }
    },
    fails: 'lists plants ascending by id, in whatever order they came',
    says: 'must return names to the letter.',
  },
  {
    breaks: 'sorts the ids, and leaves the tags as they came',
    Store: class extends SortingStore {
      override list(owner: string, page: PageRequest): readonly NewPlant[] {
        const tags = [...this.plants.values()].map(({ tag }) => tag)
        return super.list(owner, page).map((plant, i) => ({ ...plant, tag: tags[i] }))
      }
    },
    fails: 'lists plants ascending by id, in whatever order they came',
    says: 'must return tags to the letter.',
  },
  {
    breaks: 'lists from after on, inclusive',
    Store: listing((list, page) => list(page.after === undefined ? page : { ...page, after: page.after - 1n })),
    fails: 'lists only ids greater than after',
    says: 'must return only ids greater than after.',
  },
  {
    breaks: 'rounds after through a double',
    Store: listing((list, page) => {
      return list(page.after === undefined ? page : { ...page, after: BigInt(Number(page.after)) })
    }),
    fails: 'lists only ids greater than after',
    says: 'must return only ids greater than after.',
  },
  {
    breaks: 'lists from the first plant on if after is negative, and the id of no plant',
    Store: listing((list, page) => {
      const { after = 0n } = page
      const isKnown = list({ limit: Infinity, maxBytes: Infinity }).some(({ id }) => id === after)
      return list(after >= 0n || isKnown ? page : { ...page, after: undefined })
    }),
    fails: 'lists only ids greater than after',
    says: 'must return only ids greater than after.',
  },
  {
    breaks: 'forgets the limit if there is an after',
    Store: listing((list, page) => list(page.after === undefined ? page : { ...page, limit: Infinity })),
    fails: 'lists only ids greater than after',
    says: 'must return at most limit plants: 2.',
  },
  {
    breaks: 'takes after 0 for none',
    Store: listing((list, { limit, maxBytes, after }) =>
      list(after ? { limit, maxBytes, after } : { limit, maxBytes }),
    ),
    fails: 'lists only ids greater than after',
    says: 'must return only ids greater than after.',
  },
]
