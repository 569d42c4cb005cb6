import type { NewPlant } from '../../src/plants/plant.ts'
import type { Page, PageRequest, Store } from '../../src/plants/store.ts'
import { delegatingStore } from '../support/database/delegating-store.ts'

/** The simplest store that keeps the contract, for others to break. */
export class SortingStore implements Store {
  readonly plants = new Map<string, NewPlant & { owner: string }>()

  key = (owner: string, id: bigint): string => JSON.stringify([owner, String(id)])

  create(owner: string, plant: NewPlant): boolean {
    if (this.has(owner, plant.id)) return false
    this.plants.set(this.key(owner, plant.id), { ...plant, owner })
    return true
  }

  list(owner: string, { limit, after }: PageRequest): Page {
    return [...this.plants.values()]
      .filter((plant) => plant.owner === owner && (after === undefined || plant.id > after))
      .sort((a, b) => (a.id < b.id ? -1 : 1))
      .slice(0, limit)
  }

  delete(owner: string, id: bigint): boolean {
    return this.plants.delete(this.key(owner, id))
  }

  ping(): void {
    // It is in reach.
  }

  close(): void {
    // It opened nothing.
  }

  has(owner: string, id: bigint): boolean {
    return this.plants.has(this.key(owner, id))
  }
}

/** What a store does in another way than the simplest one, which it is given. */
export type Change = (store: SortingStore) => Partial<Store>

export function changed(change: Change): Store {
  const store = new SortingStore()
  return delegatingStore(store, change(store))
}
