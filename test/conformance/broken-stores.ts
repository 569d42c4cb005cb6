import { setImmediate as nextTurn } from 'node:timers/promises'
import type { NewPlant } from '../../src/plants/plant.ts'
import type { PageRequest, Store } from '../../src/plants/store.ts'

/** A store that breaks the contract, a test of the conformance suite that finds it, and how it says so. */
export interface BrokenStore {
  readonly breaks: string
  readonly Store: new () => Store
  readonly fails: string
  readonly says: string
}

/** The simplest store that keeps the contract, for others to break. */
export class SortingStore implements Store {
  readonly plants = new Map<string, NewPlant & { owner: string }>()

  key(owner: string, id: bigint): string {
    return JSON.stringify([owner, String(id)])
  }

  create(owner: string, plant: NewPlant): boolean | Promise<boolean> {
    const key = this.key(owner, plant.id)
    if (this.plants.has(key)) return false
    this.plants.set(key, { ...plant, owner })
    return true
  }

  list(owner: string, { limit, after }: PageRequest): readonly NewPlant[] {
    return [...this.plants.values()]
      .filter((plant) => plant.owner === owner && (after === undefined || plant.id > after))
      .sort((a, b) => (a.id < b.id ? -1 : 1))
      .slice(0, limit)
  }

  delete(owner: string, id: bigint): boolean | Promise<boolean> {
    return this.plants.delete(this.key(owner, id))
  }

  ping(): void | Promise<void> {
    // It is in reach.
  }

  close(): void | Promise<void> {
    // It opened nothing.
  }
}

/** Changes what is kept of a plant. */
function keeping(change: (plant: NewPlant) => NewPlant): new () => Store {
  return class extends SortingStore {
    override create(owner: string, plant: NewPlant): boolean | Promise<boolean> {
      return super.create(owner, change(plant))
    }
  }
}

/** Changes what is kept of a plant's name and tag. */
function keepingText(change: (text: string) => string): new () => Store {
  return keeping(({ id, name, tag }) => ({ id, name: change(name), tag: tag === undefined ? tag : change(tag) }))
}

/** Keeps no empty name and no empty tag. */
export const TextLosingStore = keepingText((text) => (text === '' ? (undefined as unknown as string) : text))

/** Changes what is listed. */
function listing(
  change: (list: (page: PageRequest) => readonly NewPlant[], page: PageRequest) => unknown,
): new () => Store {
  return class extends SortingStore {
    override list(owner: string, page: PageRequest): readonly NewPlant[] {
      return change((inner) => super.list(owner, inner), page) as readonly NewPlant[]
    }
  }
}

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

/** Lets lists at the same time share one read if their keys are the same. */
function sharingReads(key: (owner: string, page: PageRequest) => string): new () => Store {
  return class extends SortingStore {
    readonly #underWay = new Map<string, Promise<readonly NewPlant[]>>()

    override list(owner: string, page: PageRequest): readonly NewPlant[] {
      const shared = this.#underWay.get(key(owner, page)) ?? this.#read(owner, page)
      this.#underWay.set(key(owner, page), shared)
      return shared as unknown as readonly NewPlant[]
    }

    async #read(owner: string, page: PageRequest): Promise<readonly NewPlant[]> {
      await nextTurn()
      this.#underWay.delete(key(owner, page))
      return super.list(owner, page)
    }
  }
}

/** Changes the plant that has the id of another that is created, and rightly says false to that. */
function changingTaken(change: (kept: NewPlant, plant: NewPlant) => NewPlant): new () => Store {
  return class extends SortingStore {
    override create(owner: string, plant: NewPlant): boolean | Promise<boolean> {
      const kept = this.plants.get(this.key(owner, plant.id))
      if (kept !== undefined) this.plants.set(this.key(owner, plant.id), { ...change(kept, plant), owner })
      return super.create(owner, plant)
    }
  }
}

/** Takes some owners for others. */
function mistaking(change: (owner: string) => string): Pick<BrokenStore, 'Store' | 'fails' | 'says'> {
  return {
    Store: class extends SortingStore {
      override create(owner: string, plant: NewPlant): boolean | Promise<boolean> {
        return super.create(change(owner), plant)
      }

      override list(owner: string, page: PageRequest): readonly NewPlant[] {
        return super.list(change(owner), page)
      }

      override delete(owner: string, id: bigint): boolean | Promise<boolean> {
        return super.delete(change(owner), id)
      }
    },
    fails: 'keeps owners apart, whatever their names',
    says: 'must return true: this owner has no plant with this id, whatever others have.',
  }
}

/** Changes a plant that has the id of one that was deleted. */
function remembering(change: (plant: NewPlant, deleted: NewPlant) => NewPlant): new () => Store {
  return class extends SortingStore {
    readonly #deleted = new Map<string, NewPlant>()

    override create(owner: string, plant: NewPlant): boolean | Promise<boolean> {
      return super.create(owner, change(plant, this.#deleted.get(this.key(owner, plant.id)) ?? plant))
    }

    override delete(owner: string, id: bigint): boolean | Promise<boolean> {
      const key = this.key(owner, id)
      const plant = this.plants.get(key)
      if (plant !== undefined) this.#deleted.set(key, plant)
      return this.plants.delete(key)
    }
  }
}

/** Changes how owner and id make a key. */
function keyedBy(key: (owner: string, id: bigint) => string): new () => Store {
  return class extends SortingStore {
    override key(owner: string, id: bigint): string {
      return key(owner, id)
    }
  }
}

function ascendingBy(key: (plant: NewPlant) => bigint | string): (a: NewPlant, b: NewPlant) => number {
  return (a, b) => (key(a) < key(b) ? -1 : 1)
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

/** Ends a page as soon as it may, but counts other bytes, and so too many. */
function counting(bytesOf: (plant: NewPlant) => number): Pick<BrokenStore, 'Store' | 'fails' | 'says'> {
  return {
    Store: cutting((plants, maxBytes) => 1 + countUpTo(plants, maxBytes - 1, bytesOf)),
    fails: 'ends a page before its limit only once names and tags come to maxBytes',
    says: 'must go on to limit plants or to maxBytes bytes of names and tags, and to one plant at least.',
  }
}

/** Whether a text is what LIKE of SQL matches with a pattern; without escapes. */
function isLike(text: string, pattern: string): boolean {
  const escaped = pattern.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&')
  return new RegExp(`^${escaped.replaceAll('%', '.*').replaceAll('_', '.')}$`, 's').test(text)
}

/** Stores that break the contract, each in one way. */
export const brokenStores: readonly BrokenStore[] = [
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
  {
    breaks: 'lists null for an owner without plants',
    Store: listing((list, page) => (list(page).length === 0 ? null : list(page))),
    fails: 'lists nothing for an owner who has no plants',
    says: 'must return an array. It returned null.',
  },
  {
    breaks: "lists everyone's plants",
    Store: class extends SortingStore {
      override list(_owner: string, { limit }: PageRequest): readonly NewPlant[] {
        return [...this.plants.values()].slice(0, limit)
      }
    },
    fails: 'lists nothing for an owner who has no plants',
    says: 'must return only plants that the owner has.',
  },
  {
    breaks: 'joins owner and id without a separator',
    Store: keyedBy((owner, id) => owner + String(id)),
    fails: 'keeps owners apart, whatever their names',
    says: 'must return true: this owner has no plant with this id, whatever others have.',
  },
  {
    breaks: 'compares owners without regard to case',
    Store: keyedBy((owner, id) => JSON.stringify([owner.toLowerCase(), String(id)])),
    fails: 'keeps owners apart, whatever their names',
    says: 'must return true: this owner has no plant with this id, whatever others have.',
  },
  { breaks: 'trims owners', ...mistaking((owner) => owner.trim()) },
  { breaks: 'normalises owners', ...mistaking((owner) => owner.normalize()) },
  { breaks: 'cuts owners at 500 characters', ...mistaking((owner) => owner.slice(0, 500)) },
  {
    breaks: 'skips a byte order mark of owners',
    ...mistaking((owner) => new TextDecoder().decode(Buffer.from(owner))),
  },
  { breaks: 'takes a backslash of owners for an escape', ...mistaking((owner) => owner.replace(/\\(.)/g, '$1')) },
  { breaks: 'takes owners for paths', ...mistaking((owner) => owner.replace(/\/.*/, '')) },
  {
    breaks: 'keeps three bytes of a character of owners',
    ...mistaking((owner) => owner.replace(/[^\0-\uffff]/gu, '?')),
  },
  {
    breaks: 'keeps owners as the names of members of an object',
    Store: class extends SortingStore {
      readonly #owners: Record<string, Map<bigint, NewPlant>> = {}

      override create(owner: string, plant: NewPlant): boolean {
        const plants = (this.#owners[owner] ??= new Map())
        if (plants.has(plant.id)) return false
        plants.set(plant.id, plant)
        return true
      }

      override list(owner: string): readonly NewPlant[] {
        return [...(this.#owners[owner] ?? new Map<bigint, NewPlant>()).values()]
      }
    },
    fails: 'keeps owners apart, whatever their names',
    says: "create('__proto__', { id: 1n, name: '__proto__' }) must not fail.",
  },
  {
    breaks: 'takes the owner of a list for a pattern',
    Store: class extends SortingStore {
      override list(owner: string): readonly NewPlant[] {
        return [...this.plants.values()].filter((plant) => isLike(plant.owner, owner))
      }
    },
    fails: 'keeps owners apart, whatever their names',
    says: 'must return plants ascending by id, each once.',
  },
  {
    breaks: 'takes the owner of a delete for a pattern',
    Store: class extends SortingStore {
      override delete(owner: string, id: bigint): boolean {
        const found = [...this.plants].find(([, plant]) => plant.id === id && isLike(plant.owner, owner))
        return found !== undefined && this.plants.delete(found[0])
      }
    },
    fails: 'deletes no plant of another owner',
    says: 'must return only plants that the owner has.',
  },
  {
    breaks: 'lists without regard to the case of the owner',
    Store: class extends SortingStore {
      override list(owner: string): readonly NewPlant[] {
        return [...this.plants.values()].filter((plant) => plant.owner.toLowerCase() === owner.toLowerCase())
      }
    },
    fails: 'keeps owners apart, whatever their names',
    says: 'must return plants ascending by id, each once.',
  },
  {
    breaks: 'says that it deleted, and did not',
    Store: class extends SortingStore {
      override delete(owner: string, id: bigint): boolean {
        return this.plants.has(this.key(owner, id))
      }
    },
    fails: 'deletes no plant of another owner',
    says: 'must return only plants that the owner has.',
  },
  {
    breaks: 'deletes whoever owns it',
    Store: class extends SortingStore {
      override delete(_owner: string, id: bigint): boolean {
        const found = [...this.plants].find(([, plant]) => plant.id === id)
        return found !== undefined && this.plants.delete(found[0])
      }
    },
    fails: 'deletes no plant of another owner',
    says: 'must return false: this owner has no plant with this id, whatever others have.',
  },
  {
    breaks: 'says true to a second create',
    Store: class extends SortingStore {
      override create(owner: string, plant: NewPlant): boolean {
        void super.create(owner, plant)
        return true
      }
    },
    fails: 'returns false if the id is taken, and keeps the first plant',
    says:
      "create('owner', { id: 1n, name: 'second', tag: 'second' }) must return false: this owner has a plant with this " +
      'id already. It returned true.',
  },
  {
    breaks: 'says true to a second create without a tag',
    Store: class extends SortingStore {
      override create(owner: string, plant: NewPlant): boolean {
        const isNew = super.create(owner, plant) as boolean
        return isNew || plant.tag === undefined
      }
    },
    fails: 'returns false if the id is taken, and keeps the first plant',
    says:
      "create('owner', { id: 2n, name: 'second' }) must return false: this owner has a plant with this id already. " +
      'It returned true.',
  },
  {
    breaks: 'keeps the second plant of an id',
    Store: class extends SortingStore {
      override create(owner: string, plant: NewPlant): boolean {
        const isNew = !this.plants.has(this.key(owner, plant.id))
        this.plants.set(this.key(owner, plant.id), { ...plant, owner })
        return isNew
      }
    },
    fails: 'returns false if the id is taken, and keeps the first plant',
    says: 'must return names to the letter.',
  },
  {
    breaks: 'adds the tag of the second plant of an id',
    Store: changingTaken((kept, { tag }) => ({ ...kept, tag: kept.tag ?? tag })),
    fails: 'returns false if the id is taken, and keeps the first plant',
    says: 'must return no tag, or undefined, if the plant has none.',
  },
  {
    breaks: 'takes away the tag that the second plant of an id lacks',
    Store: changingTaken((kept, { tag }) => ({ ...kept, tag: tag === undefined ? tag : kept.tag })),
    fails: 'returns false if the id is taken, and keeps the first plant',
    says: 'must return tags to the letter.',
  },
  {
    breaks: 'deletes all plants of the owner',
    Store: class extends SortingStore {
      override delete(owner: string, id: bigint): boolean {
        const found = this.plants.has(this.key(owner, id))
        if (found) for (const [key, plant] of this.plants) if (plant.owner === owner) this.plants.delete(key)
        return found
      }
    },
    fails: 'deletes a plant, and only that one',
    says: 'must return every plant of the owner that is asked for.',
  },
  {
    breaks: 'says false to every delete',
    Store: class extends SortingStore {
      override delete(owner: string, id: bigint): boolean {
        void super.delete(owner, id)
        return false
      }
    },
    fails: 'deletes a plant, and only that one',
    says: "delete('owner', 2n) must return true: this owner has a plant with this id. It returned false.",
  },
  {
    breaks: 'says true to every delete',
    Store: class extends SortingStore {
      override delete(owner: string, id: bigint): boolean {
        void super.delete(owner, id)
        return true
      }
    },
    fails: 'returns false if there is nothing to delete',
    says: 'must return false: this owner has no plant with this id, whatever others have.',
  },
  {
    breaks: 'says true to a delete of an owner whom it has never seen',
    Store: class extends SortingStore {
      readonly #seen = new Set<string>()

      override create(owner: string, plant: NewPlant): boolean | Promise<boolean> {
        this.#seen.add(owner)
        return super.create(owner, plant)
      }

      override delete(owner: string, id: bigint): boolean | Promise<boolean> {
        return !this.#seen.has(owner) || super.delete(owner, id)
      }
    },
    fails: 'returns false if there is nothing to delete',
    says: "delete('owner', 1n) must return false: this owner has no plant with this id, whatever others have.",
  },
  {
    breaks: 'says true to a delete of an owner who has plants',
    Store: class extends SortingStore {
      override delete(owner: string, id: bigint): boolean {
        const hasPlants = [...this.plants.values()].some((plant) => plant.owner === owner)
        this.plants.delete(this.key(owner, id))
        return hasPlants
      }
    },
    fails: 'returns false if there is nothing to delete',
    says: "delete('owner', 2n) must return false: this owner has no plant with this id, whatever others have.",
  },
  {
    breaks: 'says true to a second delete',
    Store: class extends SortingStore {
      readonly #used = new Set<string>()

      override delete(owner: string, id: bigint): boolean {
        const key = this.key(owner, id)
        if (this.plants.delete(key)) this.#used.add(key)
        return this.#used.has(key)
      }
    },
    fails: 'returns false if there is nothing to delete',
    says: "delete('owner', 1n) must return false: this owner has no plant with this id, whatever others have.",
  },
  {
    breaks: 'answers with 1 and 0',
    Store: class extends SortingStore {
      override delete(owner: string, id: bigint): boolean {
        return Number(super.delete(owner, id)) as unknown as boolean
      }
    },
    fails: 'returns false if there is nothing to delete',
    says: 'must return false: this owner has no plant with this id, whatever others have.',
  },
  {
    breaks: 'never takes an id again',
    Store: class extends SortingStore {
      readonly #used = new Set<string>()

      override create(owner: string, plant: NewPlant): boolean | Promise<boolean> {
        const key = this.key(owner, plant.id)
        if (this.#used.has(key)) return false
        this.#used.add(key)
        return super.create(owner, plant)
      }
    },
    fails: 'takes an id anew once its plant is deleted',
    says: 'must return true: this owner has no plant with this id, whatever others have.',
  },
  {
    breaks: 'brings back what was deleted',
    Store: remembering((_, deleted) => deleted),
    fails: 'takes an id anew once its plant is deleted',
    says: 'must return names to the letter. From character 0 on, that of 1n is "first"…, and must be "second"….',
  },
  {
    breaks: 'brings back the tag of what was deleted',
    Store: remembering((plant, { tag }) => ({ tag, ...plant })),
    fails: 'takes an id anew once its plant is deleted',
    says: "must return no tag, or undefined, if the plant has none. That of 1n is 'first'.",
  },
  {
    breaks: 'makes an absent tag null',
    Store: listing((list, page) => list(page).map((plant) => ({ ...plant, tag: plant.tag ?? null }))),
    fails: 'keeps an absent tag absent and an empty tag empty',
    says: 'must return no tag, or undefined, if the plant has none.',
  },
  {
    breaks: 'drops an empty tag',
    Store: keeping(({ id, name, tag }) => ({ id, name, tag: tag === '' ? undefined : tag })),
    fails: 'keeps an absent tag absent and an empty tag empty',
    says: 'must return tags to the letter.',
  },
  {
    breaks: 'takes an empty text for none',
    Store: TextLosingStore,
    fails: 'keeps an absent tag absent and an empty tag empty',
    says: 'must return tags to the letter. That of 2n is undefined, and must be "".',
  },
  {
    breaks: 'normalises texts',
    Store: keepingText((text) => text.normalize()),
    fails: 'keeps names and tags to the letter',
    says: 'must return names to the letter.',
  },
  {
    breaks: 'trims texts',
    Store: keepingText((text) => text.trim()),
    fails: 'keeps names and tags to the letter',
    says: 'must return names to the letter.',
  },
  {
    breaks: 'turns line breaks into \\n',
    Store: keepingText((text) => text.replace(/\r\n?/g, '\n')),
    fails: 'keeps names and tags to the letter',
    says: 'must return names to the letter.',
  },
  {
    breaks: 'skips a byte order mark',
    Store: keepingText((text) => new TextDecoder().decode(Buffer.from(text))),
    fails: 'keeps names and tags to the letter',
    says: 'must return names to the letter.',
  },
  {
    breaks: 'keeps three bytes of a character',
    Store: keepingText((text) => text.replace(/[^\0-\uffff]/gu, '\ufffd')),
    fails: 'keeps every character of Unicode but U+0000',
    says: 'must return names to the letter.',
  },
  {
    breaks: 'drops private characters',
    Store: keepingText((text) => text.replace(/\p{Private_Use}/gu, '')),
    fails: 'keeps every character of Unicode but U+0000',
    says: 'must return names to the letter.',
  },
  {
    breaks: 'cuts texts at 32 KiB',
    Store: keepingText((text) => text.slice(0, 32_768)),
    fails: 'keeps names and tags of 60 KB',
    says: 'must return names to the letter.',
  },
  {
    breaks: 'forgets a plant after some time',
    Store: class extends SortingStore {
      #operations = 0

      override list(owner: string, page: PageRequest): readonly NewPlant[] {
        if (++this.#operations > 500) this.plants.clear()
        return super.list(owner, page)
      }
    },
    fails: 'does what a Map does, through 2,000 random operations',
    says: "Step 1445 with seed 1: list('ab', { limit: 10, maxBytes: 1073741824, after: -2147483649n }) must return every plant of the owner that is asked for. -2147483648n is missing.",
  },
  {
    breaks: 'looks, waits, and then creates',
    Store: class extends SortingStore {
      override async create(owner: string, plant: NewPlant): Promise<boolean> {
        if (this.plants.has(this.key(owner, plant.id))) return false
        await nextTurn()
        this.plants.set(this.key(owner, plant.id), { ...plant, owner })
        return true
      }
    },
    fails: 'creates an id once, however many ask at the same time',
    says: 'Of 50 calls of create for one id at the same time, one must return true and the others false.',
  },
  {
    breaks: 'says nothing to those who create too late',
    Store: class extends SortingStore {
      override create(owner: string, plant: NewPlant): boolean {
        return (super.create(owner, plant) || undefined) as boolean
      }
    },
    fails: 'creates an id once, however many ask at the same time',
    says: 'one must return true and the others false. 1 returned true.',
  },
  {
    breaks: 'tells the first of many that it was created, and keeps the last',
    Store: changingTaken((_, plant) => plant),
    fails: 'creates an id once, however many ask at the same time',
    says: 'must return names to the letter.',
  },
  {
    breaks: 'looks, waits, and then deletes',
    Store: class extends SortingStore {
      override async delete(owner: string, id: bigint): Promise<boolean> {
        if (!this.plants.has(this.key(owner, id))) return false
        await nextTurn()
        this.plants.delete(this.key(owner, id))
        return true
      }
    },
    fails: 'deletes a plant once, however many ask at the same time',
    says: 'Of 50 calls of delete for one id at the same time, one must return true and the others false.',
  },
  {
    breaks: 'tells one of many that it was deleted, and keeps it',
    Store: class extends SortingStore {
      readonly #deleted = new Set<string>()

      override delete(owner: string, id: bigint): boolean {
        const key = this.key(owner, id)
        const isFirst = !this.#deleted.has(key)
        this.#deleted.add(key)
        return isFirst && this.plants.has(key)
      }
    },
    fails: 'deletes a plant once, however many ask at the same time',
    says: 'must return only plants that the owner has.',
  },
  {
    breaks: 'copies its plants, waits, and then puts the copy in their place',
    Store: class extends SortingStore {
      override async create(owner: string, plant: NewPlant): Promise<boolean> {
        const copy = new Map(this.plants)
        const isNew = !copy.has(this.key(owner, plant.id))
        await nextTurn()
        if (!isNew) return false
        this.plants.clear()
        for (const [key, kept] of copy) this.plants.set(key, kept)
        this.plants.set(this.key(owner, plant.id), { ...plant, owner })
        return true
      }
    },
    fails: 'gives each of many operations at the same time its own result',
    says: 'must return every plant of the owner that is asked for.',
  },
  {
    breaks: 'deletes only the first plant of those that are to go at the same time',
    Store: class extends SortingStore {
      #isBusy = false

      override async delete(owner: string, id: bigint): Promise<boolean> {
        const isThere = this.plants.has(this.key(owner, id))
        const isFirst = !this.#isBusy
        this.#isBusy = true
        await nextTurn()
        this.#isBusy = false
        if (isFirst) void super.delete(owner, id)
        return isThere
      }
    },
    fails: 'gives each of many operations at the same time its own result',
    says: 'must return only plants that the owner has.',
  },
  {
    breaks: 'answers what waits together with the answer of the last',
    Store: class extends SortingStore {
      #last = false

      async #together(answer: boolean | Promise<boolean>): Promise<boolean> {
        this.#last = await answer
        await nextTurn()
        return this.#last
      }

      override create(owner: string, plant: NewPlant): Promise<boolean> {
        return this.#together(super.create(owner, plant))
      }

      override delete(owner: string, id: bigint): Promise<boolean> {
        return this.#together(super.delete(owner, id))
      }
    },
    fails: 'gives each of many operations at the same time its own result',
    says: 'must return true: this owner has no plant with this id, whatever others have.',
  },
  {
    breaks: 'deletes of all owners that wait together all ids that they want to delete',
    Store: class extends SortingStore {
      readonly #waiting: { owner: string; id: bigint }[] = []

      override async delete(owner: string, id: bigint): Promise<boolean> {
        const isThere = this.plants.has(this.key(owner, id))
        this.#waiting.push({ owner, id })
        await nextTurn()
        const group = this.#waiting.splice(0)
        for (const { owner } of group) for (const { id } of group) void super.delete(owner, id)
        return isThere
      }
    },
    fails: 'keeps owners apart that ask at the same time',
    says: 'must return every plant of the owner that is asked for.',
  },
  {
    breaks: 'creates what waits together for the owner of the first',
    Store: class extends SortingStore {
      #first: string | undefined

      override async create(owner: string, plant: NewPlant): Promise<boolean> {
        const first = (this.#first ??= owner)
        await nextTurn()
        this.#first = undefined
        return super.create(this.plants.has(this.key(owner, plant.id)) ? owner : first, plant)
      }
    },
    fails: 'keeps owners apart that ask at the same time',
    says: 'must return true: this owner has no plant with this id, whatever others have.',
  },
  {
    breaks: 'deletes what waits together for the owner of the first',
    Store: class extends SortingStore {
      #first: string | undefined

      override async delete(owner: string, id: bigint): Promise<boolean> {
        const first = (this.#first ??= owner)
        await nextTurn()
        this.#first = undefined
        return super.delete(first, id)
      }
    },
    fails: 'keeps owners apart that ask at the same time',
    says: 'must return true: this owner has a plant with this id.',
  },
  {
    breaks: 'gives all who list at the same time the list of the first',
    Store: sharingReads(() => ''),
    fails: 'keeps owners apart that ask at the same time',
    says: "list('owner 1', { limit: 1000, maxBytes: 1073741824, after: undefined }) must return names to the letter.",
  },
  {
    breaks: 'gives all who list at the same time the list with the limit and the after of the first',
    Store: sharingReads((owner) => owner),
    fails: 'gives each of many lists at the same time its own page',
    says: 'must return every plant of the owner that is asked for.',
  },
  {
    breaks: 'gives all who list at the same time the list with the after of the first',
    Store: sharingReads((owner, { limit }) => `${owner} ${limit}`),
    fails: 'gives each of many lists at the same time its own page',
    says: 'must return only ids greater than after.',
  },
  {
    breaks: 'gives all who list at the same time the list with the limit of the first',
    Store: sharingReads((owner, { after }) => `${owner} ${after}`),
    fails: 'gives each of many lists at the same time its own page',
    says: 'must return every plant of the owner that is asked for.',
  },
  {
    breaks: 'is never in reach',
    Store: class extends SortingStore {
      override ping(): Promise<void> {
        return Promise.reject(new Error('Out of reach'))
      }
    },
    fails: 'settles a ping, if it takes one',
    says: 'must not fail.',
  },
  {
    breaks: 'closes once if it has plants',
    Store: class extends SortingStore {
      #isOpen = true

      override close(): void {
        if (!this.#isOpen && this.plants.size > 0) throw new Error('Closed already')
        this.#isOpen = false
      }
    },
    fails: 'may be closed twice',
    says: 'must not fail.',
  },
  {
    breaks: 'closes once',
    Store: class extends SortingStore {
      #isOpen = true

      override close(): void {
        if (!this.#isOpen) throw new Error('Closed already')
        this.#isOpen = false
      }
    },
    fails: 'may be closed twice',
    says: 'must not fail.',
  },
]
