import type { NewPlant } from '../../../src/plants/plant.ts'
import type { PageRequest, Store } from '../../../src/plants/store.ts'
import { ascendingBy, changed, found, listing, row, SAYS } from './sorting-store.ts'
import type { BrokenStore, Change, Row, SortingStore } from './sorting-store.ts'

/** How many of the plants of a list make a page. */
type Count = (plants: readonly NewPlant[], maxBytes: number) => number

function cutting(breaks: string, countOf: Count): Row {
  return listing(breaks, SAYS.goOn, (list, page) => list(page).slice(0, countOf(list(page), page.maxBytes)))
}

/** How many plants there are before the one with which they are longer than `maxBytes`. */
function countUpTo(plants: readonly NewPlant[], maxBytes: number, bytesOf = textBytes): number {
  let bytes = 0
  return plants.filter((plant) => (bytes += bytesOf(plant)) <= maxBytes).length
}

function textBytes({ name, tag = '' }: NewPlant): number {
  return Buffer.byteLength(name + tag)
}

/** Ends a page as soon as it may, by the bytes that it counts of a plant. */
function counting(breaks: string, bytesOf: (plant: NewPlant) => number): Row {
  return cutting(breaks, (plants, maxBytes) => 1 + countUpTo(plants, maxBytes - 1, bytesOf))
}

/** A store that ends a page as soon as it may. It keeps the contract. */
export function createThriftyStore(): Store {
  return changed(counting('nothing', textBytes).change)
}

const UNLIMITED = { limit: Infinity, maxBytes: Infinity }

/** Where a store is that turns pages by counting the plants that it has listed. */
interface Place {
  listed: number
  last: bigint
}

function turning(change: (store: SortingStore, place: Place) => Partial<Store> = () => ({})): Change {
  return (store) => {
    const place: Place = { listed: 0, last: 0n }
    return {
      list(owner, { limit, after = -1n }: PageRequest) {
        if (after < 0n) place.listed = 0
        const page = store.list(owner, UNLIMITED).slice(place.listed, place.listed + limit)
        place.listed += page.length
        place.last = page.at(-1)?.id ?? 0n
        return page
      },
      ...change(store, place),
    }
  }
}

/** Stores that end their pages too early or too late, or turn them wrongly. */
export const WRONG_PAGES: readonly BrokenStore[] = [
  ...found(
    'lists at most as many plants as the limit says',
    listing('lists one plant too many', 'must return at most limit plants: 1.', (list, page) => {
      return list({ ...page, limit: page.limit + 1 })
    }),
    listing(
      'lists one plant too many if asked for 1,000',
      'must return at most limit plants: 1000. It returned 1001.',
      (list, page) => list({ ...page, limit: page.limit < 1000 ? page.limit : 1001 }),
    ),
    listing('lists at most 500', SAYS.all, (list, page) => list({ ...page, limit: Math.min(page.limit, 500) })),
  ),
  ...found(
    'ends a page before its limit only once names and tags come to maxBytes',
    cutting('ends a page before the plant that would make it longer than maxBytes', (plants, maxBytes) => {
      return Math.max(1, countUpTo(plants, maxBytes))
    }),
    listing('lists nothing at all if few bytes are asked for', 'must return an array.', (list, page) => {
      return page.maxBytes < 1e6 ? undefined : list(page)
    }),
    cutting('lists nothing if the next plant is longer than maxBytes', (plants, maxBytes) => {
      return plants.slice(0, 1).some((plant) => textBytes(plant) > maxBytes) ? 0 : 1000
    }),
    counting('counts what JSON adds to names and tags', ({ name, tag }) => JSON.stringify({ name, tag }).length),
    counting('counts an absent tag as the text null', ({ name, tag = 'null' }) => Buffer.byteLength(name + tag)),
    counting('counts a tag twice', ({ name, tag = '' }) => Buffer.byteLength(name + tag + tag)),
    counting('counts the ids too', (plant) => 8 + textBytes(plant)),
    counting('counts each character beyond ASCII as four bytes', ({ name, tag = '' }) => {
      return (name + tag).replace(/[^\0-\x7f]/gu, '1234').length
    }),
    counting('counts a line break as two bytes', ({ name, tag = '' }) => {
      return Buffer.byteLength((name + tag).replaceAll('\n', '\r\n'))
    }),
    counting('counts a quote as two bytes', ({ name, tag = '' }) => {
      return Buffer.byteLength((name + tag).replaceAll('"', '""'))
    }),
    counting('counts a long text as whole blocks of 4 KiB', (plant) => {
      return textBytes(plant) < 1000 ? textBytes(plant) : 4096 * Math.ceil(textBytes(plant) / 4096)
    }),
  ),
  ...found(
    'gives each plant once, page by page, while others come and go',
    row('turns pages by counting', SAYS.all, turning()),
    row(
      'turns pages by counting, and forgets plants that come',
      SAYS.beyond,
      turning((store, place) => ({
        delete(owner, id) {
          if (id <= place.last) place.listed--
          return store.delete(owner, id)
        },
      })),
    ),
    row(
      'turns pages by counting, and forgets plants that go',
      SAYS.all,
      turning((store, place) => ({
        create(owner, plant) {
          if (plant.id < place.last) place.listed++
          return store.create(owner, plant)
        },
      })),
    ),
    row('goes on with what it has read, without what came meanwhile', SAYS.all, (store) => {
      let last: bigint | undefined
      let known = new Set<bigint>()
      return {
        list(owner, { limit, after }) {
          const plants = store.list(owner, { ...UNLIMITED, after })
          if (after !== last) known = new Set(plants.map(({ id }) => id))
          const page = plants.filter(({ id }) => known.has(id)).slice(0, limit)
          last = page.at(-1)?.id
          return page
        },
      }
    }),
    row('goes on with what it has read, and with what went meanwhile', SAYS.all, (store) => {
      let last: bigint | undefined
      let gone: NewPlant[] = []
      return {
        list(owner, { limit, after }) {
          if (after !== last) gone = []
          const stale = gone.filter(({ id }) => id > after! && !store.has(owner, id))
          const plants = store.list(owner, { ...UNLIMITED, after })
          const page = [...plants, ...stale].sort(ascendingBy(({ id }) => id)).slice(0, limit)
          last = page.at(-1)?.id
          return page
        },
        delete(owner, id) {
          const plant = store.plants.get(store.key(owner, id))
          if (plant !== undefined) gone.push(plant)
          return store.delete(owner, id)
        },
      }
    }),
    row('ends a list if the plant of its last id is gone', SAYS.all, (store) => ({
      list(owner, page) {
        const { after = -1n } = page
        return after < 0n || store.has(owner, after) ? store.list(owner, page) : []
      },
    })),
  ),
]
