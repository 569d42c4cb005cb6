import type { NewPlant } from '../../../src/plants/plant.ts'
import type { Page, PageRequest, Store } from '../../../src/plants/store.ts'
import { delegatingStore } from '../../support/database/delegating-store.ts'

/** A store that breaks the contract, a test of the conformance suite that finds it, and how it says so. */
export interface BrokenStore {
  readonly breaks: string
  readonly says: string
  readonly fails: string
  readonly create: () => Store
}

/** How complaints begin that are made of many stores. */
export const SAYS = {
  isFree: 'must return true: this owner has no plant with this id, whatever others have.',
  isThere: 'must return true: this owner has a plant with this id.',
  isAbsent: 'must return false: this owner has no plant with this id, whatever others have.',
  ascending: 'must return plants ascending by id, each once.',
  beyond: 'must return only ids greater than after.',
  all: 'must return every plant of the owner that is asked for.',
  own: 'must return only plants that the owner has.',
  names: 'must return names to the letter.',
  tags: 'must return tags to the letter.',
  noTag: 'must return no tag, or undefined, if the plant has none.',
  goOn: 'must go on to limit plants or to maxBytes bytes of names and tags, and to one plant at least.',
} as const

/** What a store does in another way than the simplest one, which it is given. */
export type Change = (store: SortingStore) => Partial<Store>

export interface Row {
  readonly breaks: string
  readonly says: string
  readonly change: Change
}

export function row(breaks: string, says: string, change: Change): Row {
  return { breaks, says, change }
}

/** The stores that one test of the suite finds. */
export function found(fails: string, ...rows: readonly Row[]): readonly BrokenStore[] {
  return rows.map(({ breaks, says, change }) => ({ breaks, says, fails, create: () => changed(change) }))
}

export function changed(change: Change): Store {
  const store = new SortingStore()
  return delegatingStore(store, change(store))
}

/** The simplest store that keeps the contract, for others to break. */
export class SortingStore implements Store {
  readonly plants = new Map<string, NewPlant & { owner: string }>()

  key = (owner: string, id: bigint): string => JSON.stringify([owner, String(id)])

  create(owner: string, plant: NewPlant): boolean {
    const key = this.key(owner, plant.id)
    if (this.plants.has(key)) return false
    this.plants.set(key, { ...plant, owner })
    return true
  }

  list(owner: string, { limit, after }: PageRequest): Page {
    return this.plantsOf((other) => other === owner)
      .filter(({ id }) => after === undefined || id > after)
      .sort(ascendingBy(({ id }) => id))
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

  /** The plants of some owners, as they came. */
  plantsOf(isMeant: (owner: string) => boolean): NewPlant[] {
    return [...this.plants.values()].filter(({ owner }) => isMeant(owner))
  }
}

/** One that changes what it keeps of a plant. */
export function keeping(breaks: string, says: string, change: (plant: NewPlant) => NewPlant): Row {
  return row(breaks, says, (store) => ({ create: (owner, plant) => store.create(owner, change(plant)) }))
}

/** One that changes what it keeps of a plant's name and tag. */
export function keepingText(breaks: string, says: string, change: (text: string) => string): Row {
  return keeping(breaks, says, ({ id, name, tag }) => {
    return { id, name: change(name), tag: tag === undefined ? tag : change(tag) }
  })
}

type List = (page: PageRequest) => Page

/** One that changes what it lists. */
export function listing(breaks: string, says: string, change: (list: List, page: PageRequest) => unknown): Row {
  return row(breaks, says, (store) => ({
    list: (owner, page) => change((inner) => store.list(owner, inner), page) as Page,
  }))
}

/** One that changes how owner and id make a key. */
export function keyedBy(breaks: string, says: string, key: SortingStore['key']): Row {
  return row(breaks, says, (store) => {
    store.key = key
    return {}
  })
}

/** One that changes the plant that has the id of another that is created, and rightly says false to that. */
export function changingTaken(
  breaks: string,
  says: string,
  change: (kept: NewPlant, plant: NewPlant) => NewPlant,
): Row {
  return row(breaks, says, (store) => ({
    create(owner, plant) {
      const key = store.key(owner, plant.id)
      const kept = store.plants.get(key)
      if (kept !== undefined) store.plants.set(key, { ...change(kept, plant), owner })
      return store.create(owner, plant)
    },
  }))
}

export function ascendingBy(key: (plant: NewPlant) => bigint | string): (a: NewPlant, b: NewPlant) => number {
  return (a, b) => (key(a) < key(b) ? -1 : 1)
}
