import type { NewPlant } from '../../../src/plants/plant.ts'
import type { PageRequest, Store } from '../../../src/plants/store.ts'
import { changingTaken, SortingStore, type BrokenStore } from './sorting-store.ts'

/** Says the same to each delete, and carries it out. */
function answeringDeletes(answer: boolean): new () => Store {
  return class extends SortingStore {
    override delete(owner: string, id: bigint): boolean {
      void super.delete(owner, id)
      return answer
    }
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

/** Stores whose create or delete does something else than it says. */
export const WRONG_PLANTS: readonly BrokenStore[] = [
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
    Store: answeringDeletes(false),
    fails: 'deletes a plant, and only that one',
    says: "delete('owner', 2n) must return true: this owner has a plant with this id. It returned false.",
  },
  {
    breaks: 'says true to every delete',
    Store: answeringDeletes(true),
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
]
