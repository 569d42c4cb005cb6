import { setImmediate as nextTurn } from 'node:timers/promises'
import type { NewPlant } from '../../../src/plants/plant.ts'
import type { PageRequest, Store } from '../../../src/plants/store.ts'
import { changingTaken, SortingStore, type BrokenStore } from './sorting-store.ts'

/** Lets lists share one read if their keys are the same, and it is under way. */
class SharingStore extends SortingStore {
  readonly underWay = new Map<string, Promise<readonly NewPlant[]>>()

  keyOf(owner: string, { limit, after }: PageRequest): string {
    return `${owner} ${limit} ${after}`
  }

  override list(owner: string, page: PageRequest): readonly NewPlant[] {
    const key = this.keyOf(owner, page)
    const shared = this.underWay.get(key) ?? this.#read(owner, page)
    this.underWay.set(key, shared)
    return shared as unknown as readonly NewPlant[]
  }

  async #read(owner: string, page: PageRequest): Promise<readonly NewPlant[]> {
    const plants = super.list(owner, page)
    await nextTurn()
    this.underWay.delete(this.keyOf(owner, page))
    return plants
  }
}

/** Lets lists share one read if their keys are the same. */
function sharingBy(key: (owner: string, page: PageRequest) => string): new () => Store {
  return class extends SharingStore {
    override keyOf(owner: string, page: PageRequest): string {
      return key(owner, page)
    }
  }
}

/** Stores that confuse what is asked at the same time. */
export const WRONG_AT_THE_SAME_TIME: readonly BrokenStore[] = [
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
    Store: sharingBy(() => ''),
    fails: 'keeps owners apart that ask at the same time',
    says: "list('owner 1', { limit: 1000, maxBytes: 1073741824, after: undefined }) must return names to the letter.",
  },
  {
    breaks: 'gives all who list at the same time the list with the limit and the after of the first',
    Store: sharingBy((owner) => owner),
    fails: 'gives each of many lists at the same time its own page',
    says: 'must return every plant of the owner that is asked for.',
  },
  {
    breaks: 'gives all who list at the same time the list with the after of the first',
    Store: sharingBy((owner, { limit }) => `${owner} ${limit}`),
    fails: 'gives each of many lists at the same time its own page',
    says: 'must return only ids greater than after.',
  },
  {
    breaks: 'gives all who list at the same time the list with the limit of the first',
    Store: sharingBy((owner, { after }) => `${owner} ${after}`),
    fails: 'gives each of many lists at the same time its own page',
    says: 'must return every plant of the owner that is asked for.',
  },
  {
    breaks: 'lets a list share one that began before a plant was created',
    Store: SharingStore,
    fails: 'lists what was created and deleted before, while others list too',
    says: 'must return every plant of the owner that is asked for. 0n is missing.',
  },
  {
    breaks: 'lets a list share one that began before a plant was deleted',
    Store: class extends SharingStore {
      override create(owner: string, plant: NewPlant): boolean | Promise<boolean> {
        this.underWay.clear()
        return super.create(owner, plant)
      }
    },
    fails: 'lists what was created and deleted before, while others list too',
    says: "must return only plants that the owner has. One is { id: 0n, name: 'Plant 0', tag: 'Tag 0', owner: 'owner' }.",
  },
  {
    breaks: 'lets a list share one that began while a plant was created',
    Store: class extends SharingStore {
      override async create(owner: string, plant: NewPlant): Promise<boolean> {
        for (let turns = 5; turns > 0; turns--) await nextTurn()
        return super.create(owner, plant)
      }
    },
    fails: 'lists what was created and deleted before, while others list too',
    says: 'must return every plant of the owner that is asked for. 0n is missing.',
  },
]
