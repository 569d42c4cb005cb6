import { chain, withDeadline, type MaybePromise } from '../maybe-promise.ts'
import { isObject, invalidOption } from '../option-checks.ts'
import { listEncodedPlants, type EncodedPage } from './encoded-list.ts'
import type { NewPlant } from './plant.ts'
import { StoreUnavailableError, type Page, type PageRequest, type Store, type StoreMethod } from './store.ts'

export const STORE_METHODS: {
  readonly [Name in StoreMethod]: undefined extends Store[Name] ? 'optional' : 'required'
} = { create: 'required', list: 'required', delete: 'required', ping: 'optional', close: 'optional' }

export interface CheckedStore extends Pick<Store, 'create' | 'delete'> {
  list(owner: string, request: PageRequest): MaybePromise<EncodedPage>
}

/** Limits the time of a store's calls, and checks their results: `undefined` must not mean that a plant is kept. */
export function createCheckedStore(store: Store, timeoutMs: number): CheckedStore {
  const createError = (): StoreUnavailableError =>
    new StoreUnavailableError(`The store did not answer within ${timeoutMs} ms.`, { isOutcomeUnknown: true })
  const withTimeout = (result: MaybePromise<unknown>) => withDeadline(result, timeoutMs, createError)
  return {
    create: (owner, plant) => chain(withTimeout(store.create(owner, plant)), requireBoolean),
    list: (owner, request) => chain(withTimeout(listEncodedPlants(store, owner, request)), requirePage, request),
    delete: (owner, id) => chain(withTimeout(store.delete(owner, id)), requireBoolean),
  }
}

function requireBoolean(result: unknown): boolean {
  if (typeof result !== 'boolean') throw new TypeError('create and delete of a store must return true or false')
  return result
}

const EMPTY_PAGE: EncodedPage = { plants: [], hasMore: false }

/** Pages out of order could make a wrong list that looks complete, or a list that never ends. */
function requirePage(result: unknown, { limit, after }: PageRequest): EncodedPage {
  if (!isObject(result)) throw invalidOption('the result of list of a store', 'an object { plants, hasMore }', result)
  const { plants, hasMore } = result as Partial<Record<keyof Page, unknown>>
  if (!Array.isArray(plants)) throw invalidOption('plants, returned by list of a store,', 'an array', plants)
  if (typeof hasMore !== 'boolean')
    throw invalidOption('hasMore, returned by list of a store,', 'true or false', hasMore)
  if (plants.length > limit) throw new TypeError(`list of a store returned ${plants.length} plants; limit is ${limit}`)
  if (!isAscending(plants as readonly NewPlant[], after)) {
    throw new TypeError('list of a store must return plants whose ids are bigints, ascending and greater than after')
  }
  // An empty page ends the list: without a last plant, the service would ask for the same page again.
  return plants.length === 0 ? EMPTY_PAGE : (result as EncodedPage)
}

function isAscending(plants: readonly NewPlant[], after: bigint | undefined): boolean {
  for (const { id } of plants) {
    if (typeof id !== 'bigint' || (after !== undefined && id <= after)) return false
    after = id
  }
  return true
}
