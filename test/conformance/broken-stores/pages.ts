import type { NewPlant } from '../../../src/plants/plant.ts'
import type { PageRequest, Store } from '../../../src/plants/store.ts'
import { ascendingBy, listing, SortingStore, type BrokenStore } from './sorting-store.ts'

/** Changes how many plants of a list make a page. */
function cutting(countOf: (plants: readonly NewPlant[], maxBytes: number) => number): new () => Store {
  return listing((list, page) => list(page).slice(0, countOf(list(page), page.maxBytes)))
}

/** How many plants there are before the one with which they are longer than `maxBytes`. */
function countUpTo(plants: readonly NewPlant[], maxBytes: number, bytesOf = textBytes): number {
  let bytes = 0
  return plants.filter((plant) => (bytes += bytesOf(plant)) <= maxBytes).length
}

function textBytes({ name, tag = '' }: NewPlant): number {
  return Buffer.byteLength(name + tag)
}

/** A store that ends a page as soon as it may. It keeps the contract. */
export const ThriftyStore = cutting((plants, maxBytes) => 1 + countUpTo(plants, maxBytes - 1))

/** Ends a page as soon as it may, but counts other bytes, and so too many. */
function counting(bytesOf: (plant: NewPlant) => number): Pick<BrokenStore, 'Store' | 'fails' | 'says'> {
  return {
    Store: cutting((plants, maxBytes) => 1 + countUpTo(plants, maxBytes - 1, bytesOf)),
    fails: 'ends a page before its limit only once names and tags come to maxBytes',
    says: 'must go on to limit plants or to maxBytes bytes of names and tags, and to one plant at least.',
  }
}

/** Turns pages by counting the plants that it has listed. */
class CountingStore extends SortingStore {
  listed = 0
  last = 0n

  override list(owner: string, { limit, after = -1n }: PageRequest): readonly NewPlant[] {
    if (after < 0n) this.listed = 0
    const plants = super.list(owner, { limit: Infinity, maxBytes: Infinity })
    const page = plants.slice(this.listed, this.listed + limit)
    this.listed += page.length
    this.last = page.at(-1)?.id ?? 0n
    return page
  }
}

/** Stores that end their pages too early or too late, or turn them wrongly. */
export const WRONG_PAGES: readonly BrokenStore[] = [
  {
    breaks: 'lists one plant too many',
    Store: listing((list, page) => list({ ...page, limit: page.limit + 1 })),
    fails: 'lists at most as many plants as the limit says',
    says: 'must return at most limit plants: 1.',
  },
  {
    breaks: 'lists one plant too many if asked for 1,000',
    Store: listing((list, page) => list({ ...page, limit: page.limit < 1000 ? page.limit : 1001 })),
    fails: 'lists at most as many plants as the limit says',
    says: 'must return at most limit plants: 1000. It returned 1001.',
  },
  {
    breaks: 'lists at most 500',
    Store: listing((list, page) => list({ ...page, limit: Math.min(page.limit, 500) })),
    fails: 'lists at most as many plants as the limit says',
    says: 'must return every plant of the owner that is asked for.',
  },
  {
    breaks: 'ends a page before the plant that would make it longer than maxBytes',
    Store: cutting((plants, maxBytes) => Math.max(1, countUpTo(plants, maxBytes))),
    fails: 'ends a page before its limit only once names and tags come to maxBytes',
    says: 'must go on to limit plants or to maxBytes bytes of names and tags, and to one plant at least.',
  },
  {
    breaks: 'lists nothing at all if few bytes are asked for',
    Store: listing((list, page) => (page.maxBytes < 1e6 ? undefined : list(page))),
    fails: 'ends a page before its limit only once names and tags come to maxBytes',
    says: 'must return an array.',
  },
  {
    breaks: 'lists nothing if the next plant is longer than maxBytes',
    Store: cutting((plants, maxBytes) => (plants.slice(0, 1).some((plant) => textBytes(plant) > maxBytes) ? 0 : 1000)),
    fails: 'ends a page before its limit only once names and tags come to maxBytes',
    says: 'must go on to limit plants or to maxBytes bytes of names and tags, and to one plant at least.',
  },
  {
    breaks: 'counts what JSON adds to names and tags',
    ...counting(({ name, tag }) => JSON.stringify({ name, tag }).length),
  },
  {
    breaks: 'counts an absent tag as the text null',
    ...counting(({ name, tag = 'null' }) => Buffer.byteLength(name + tag)),
  },
  {
    breaks: 'counts a tag twice',
    ...counting(({ name, tag = '' }) => Buffer.byteLength(name + tag + tag)),
  },
  {
    breaks: 'counts the ids too',
    ...counting((plant) => 8 + textBytes(plant)),
  },
  {
    breaks: 'counts each character beyond ASCII as four bytes',
    ...counting(({ name, tag = '' }) => (name + tag).replace(/[^\0-\x7f]/gu, '1234').length),
  },
  {
    breaks: 'counts a line break as two bytes',
    ...counting(({ name, tag = '' }) => Buffer.byteLength((name + tag).replaceAll('\n', '\r\n'))),
  },
  {
    breaks: 'counts a quote as two bytes',
    ...counting(({ name, tag = '' }) => Buffer.byteLength((name + tag).replaceAll('"', '""'))),
  },
  {
    breaks: 'counts a long text as whole blocks of 4 KiB',
    ...counting((plant) => (textBytes(plant) < 1000 ? textBytes(plant) : 4096 * Math.ceil(textBytes(plant) / 4096))),
  },
  {
    breaks: 'turns pages by counting',
    Store: CountingStore,
    fails: 'gives each plant once, page by page, while others come and go',
    says: 'must return every plant of the owner that is asked for.',
  },
  {
    breaks: 'turns pages by counting, and forgets plants that come',
    Store: class extends CountingStore {
      override delete(owner: string, id: bigint): boolean | Promise<boolean> {
        if (id <= this.last) this.listed--
        return super.delete(owner, id)
      }
    },
    fails: 'gives each plant once, page by page, while others come and go',
    says: 'must return only ids greater than after.',
  },
  {
    breaks: 'turns pages by counting, and forgets plants that go',
    Store: class extends CountingStore {
      override create(owner: string, plant: NewPlant): boolean | Promise<boolean> {
        if (plant.id < this.last) this.listed++
        return super.create(owner, plant)
      }
    },
    fails: 'gives each plant once, page by page, while others come and go',
    says: 'must return every plant of the owner that is asked for.',
  },
  {
    breaks: 'goes on with what it has read, without what came meanwhile',
    Store: class extends SortingStore {
      #last: bigint | undefined
      #known = new Set<bigint>()

      override list(owner: string, { limit, after }: PageRequest): readonly NewPlant[] {
        const plants = super.list(owner, { limit: Infinity, maxBytes: Infinity, after })
        if (after !== this.#last) this.#known = new Set(plants.map(({ id }) => id))
        const page = plants.filter(({ id }) => this.#known.has(id)).slice(0, limit)
        this.#last = page.at(-1)?.id
        return page
      }
    },
    fails: 'gives each plant once, page by page, while others come and go',
    says: 'must return every plant of the owner that is asked for.',
  },
  {
    breaks: 'goes on with what it has read, and with what went meanwhile',
    Store: class extends SortingStore {
      #last: bigint | undefined
      #gone: NewPlant[] = []

      override list(owner: string, { limit, after }: PageRequest): readonly NewPlant[] {
        if (after !== this.#last) this.#gone = []
        const gone = this.#gone.filter(({ id }) => id > after! && !this.plants.has(this.key(owner, id)))
        const plants = super.list(owner, { limit: Infinity, maxBytes: Infinity, after })
        const page = [...plants, ...gone].sort(ascendingBy(({ id }) => id)).slice(0, limit)
        this.#last = page.at(-1)?.id
        return page
      }

      override delete(owner: string, id: bigint): boolean | Promise<boolean> {
        const plant = this.plants.get(this.key(owner, id))
        if (plant !== undefined) this.#gone.push(plant)
        return super.delete(owner, id)
      }
    },
    fails: 'gives each plant once, page by page, while others come and go',
    says: 'must return every plant of the owner that is asked for.',
  },
  {
    breaks: 'ends a list if the plant of its last id is gone',
    Store: class extends SortingStore {
      override list(owner: string, page: PageRequest): readonly NewPlant[] {
        const { after = -1n } = page
        return after < 0n || this.plants.has(this.key(owner, after)) ? super.list(owner, page) : []
      }
    },
    fails: 'gives each plant once, page by page, while others come and go',
    says: 'must return every plant of the owner that is asked for.',
  },
]
