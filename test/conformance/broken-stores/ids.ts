import { ascendingBy, found, keeping, keyedBy, listing, row, SAYS, type BrokenStore } from './sorting-store.ts'

/** Stores that get ids or their order wrong. */
export const WRONG_IDS: readonly BrokenStore[] = [
  ...found(
    'keeps ids exact over the whole of int64',
    keeping('rounds ids through a double', SAYS.isFree, ({ id, ...rest }) => ({ id: BigInt(Number(id)), ...rest })),
    listing('lists ids rounded through a double', SAYS.ascending, (list, page) =>
      list(page).map((plant) => ({ ...plant, id: BigInt(Number(plant.id)) })),
    ),
    keyedBy('cannot delete beyond 2^53', SAYS.isFree, (owner, id) => JSON.stringify([owner, Number(id)])),
  ),
  ...found(
    'keeps a plant with its id, name and tag',
    listing('lists ids as numbers', 'must return plants whose id is a bigint.', (list, page) =>
      list(page).map((plant) => ({ ...plant, id: Number(plant.id) })),
    ),
    listing('lists an iterator', 'must return an array.', (list, page) => list(page).values()),
  ),
  ...found(
    'lists plants ascending by id, in whatever order they came',
    row('lists in the order in which plants came', SAYS.ascending, (store) => ({
      list: (owner) => store.plantsOf((other) => other === owner),
    })),
    listing("lists in the order of the ids' text", SAYS.ascending, (list, page) =>
      list(page).toSorted(ascendingBy((plant) => String(plant.id))),
    ),
    listing('lists in the order of the ids as uint64', SAYS.ascending, (list, page) =>
      list(page).toSorted(ascendingBy((plant) => BigInt.asUintN(64, plant.id))),
    ),
    row('sorts its plants the first time that one comes out of order, and never again', SAYS.ascending, (store) => {
      let isSorted = false
      return {
        create(owner, plant) {
          const last = [...store.plants.values()].at(-1)
          const result = store.create(owner, plant)
          if (last !== undefined && last.id > plant.id && !isSorted) {
            isSorted = true
            const sorted = [...store.plants].sort(([, a], [, b]) => (a.id < b.id ? -1 : 1))
            store.plants.clear()
            for (const [key, kept] of sorted) store.plants.set(key, kept)
          }
          return result
        },
        list: (owner) => store.plantsOf((other) => other === owner),
      }
    }),
    row('sorts the ids, and leaves the names as they came', SAYS.names, (store) => ({
      list(owner, page) {
        const names = [...store.plants.values()].map(({ name }) => name)
        return store.list(owner, page).map((plant, i) => ({ ...plant, name: names[i]! }))
      },
    })),
    row('sorts the ids, and leaves the tags as they came', SAYS.tags, (store) => ({
      list(owner, page) {
        const tags = [...store.plants.values()].map(({ tag }) => tag)
        return store.list(owner, page).map((plant, i) => ({ ...plant, tag: tags[i] }))
      },
    })),
  ),
  ...found(
    'lists only ids greater than after',
    listing('lists from after on, inclusive', SAYS.beyond, (list, page) =>
      list(page.after === undefined ? page : { ...page, after: page.after - 1n }),
    ),
    listing('rounds after through a double', SAYS.beyond, (list, page) =>
      list(page.after === undefined ? page : { ...page, after: BigInt(Number(page.after)) }),
    ),
    listing('lists from the first plant on if after is negative, and the id of no plant', SAYS.beyond, (list, page) => {
      const { after = 0n } = page
      const isKnown = list({ limit: Infinity, maxBytes: Infinity }).some(({ id }) => id === after)
      return list(after >= 0n || isKnown ? page : { ...page, after: undefined })
    }),
    listing('forgets the limit if there is an after', 'must return at most limit plants: 2.', (list, page) =>
      list(page.after === undefined ? page : { ...page, limit: Infinity }),
    ),
    listing('takes after 0 for none', SAYS.beyond, (list, page) =>
      list({ ...page, after: page.after === 0n ? undefined : page.after }),
    ),
  ),
]
