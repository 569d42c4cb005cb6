import { MAX_PAGE, memoryStore, type Page, type Store } from '../../src/index.ts'

/** Returns a store in which ada has plants with the ids from 1 to `count`. @param name the name of all of them */
export function createStoreWithPlants(count: number, name?: string): Store {
  const store = memoryStore()
  for (let id = 1n; id <= count; id++) void store.create('ada', { id, name: name ?? `Fern ${id}` })
  return store
}

/** Creates a full page of plants after a cursor. `hasMore` is always true. */
export function createPageAfter(after = 0n, { name = 'Fern', limit = MAX_PAGE } = {}): Page {
  const plants = Array.from({ length: limit }, (_, i) => ({ id: after + BigInt(i) + 1n, name }))
  return { plants, hasMore: true }
}

export const EMPTY_PAGE: Page = { plants: [], hasMore: false }
