import type { NewPlant } from '../../../src/plants/plant.ts'
import type { PageRequest, Store } from '../../../src/plants/store.ts'

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
export function keeping(change: (plant: NewPlant) => NewPlant): new () => Store {
  return class extends SortingStore {
    override create(owner: string, plant: NewPlant): boolean | Promise<boolean> {
      return super.create(owner, change(plant))
    }
  }
}

/** Changes what is kept of a plant's name and tag. */
export function keepingText(change: (text: string) => string): new () => Store {
  return keeping(({ id, name, tag }) => ({ id, name: change(name), tag: tag === undefined ? tag : change(tag) }))
}

/** Changes what is listed. */
export function listing(
  change: (list: (page: PageRequest) => readonly NewPlant[], page: PageRequest) => unknown,
): new () => Store {
  return class extends SortingStore {
    override list(owner: string, page: PageRequest): readonly NewPlant[] {
      return change((inner) => super.list(owner, inner), page) as readonly NewPlant[]
    }
  }
}

/** Changes how owner and id make a key. */
export function keyedBy(key: (owner: string, id: bigint) => string): new () => Store {
  return class extends SortingStore {
    override key(owner: string, id: bigint): string {
      return key(owner, id)
    }
  }
}

export function ascendingBy(key: (plant: NewPlant) => bigint | string): (a: NewPlant, b: NewPlant) => number {
  return (a, b) => (key(a) < key(b) ? -1 : 1)
}

/** Changes the plant that has the id of another that is created, and rightly says false to that. */
export function changingTaken(change: (kept: NewPlant, plant: NewPlant) => NewPlant): new () => Store {
  return class extends SortingStore {
    override create(owner: string, plant: NewPlant): boolean | Promise<boolean> {
      const kept = this.plants.get(this.key(owner, plant.id))
      if (kept !== undefined) this.plants.set(this.key(owner, plant.id), { ...change(kept, plant), owner })
      return super.create(owner, plant)
    }
  }
}
