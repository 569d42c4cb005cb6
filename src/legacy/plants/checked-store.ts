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

/** Wraps a store: adds a timeout to its calls and validates their results, so that `undefined` never means success. */
export function createCheckedStore(store: Store, timeoutMs: number): CheckedStore {
  const createError = (): StoreUnavailableError =>
    new StoreUnavailableError(`The store did not respond within ${timeoutMs} ms.`, { isOutcomeUnknown: true })
  const withTimeout = (result: MaybePromise<unknown>) => withDeadline(result, timeoutMs, createError)
  return {
    create: (owner, plant) => chain(withTimeout(store.create(owner, plant)), requireBoolean),
    list: (owner, request) => chain(withTimeout(listEncodedPlants(store, owner, request)), requirePage, request),
    delete: (owner, id) => chain(withTimeout(store.delete(owner, id)), requireBoolean),
  }
}

function requireBoolean(result: unknown): boolean {
  if (typeof result !== 'boolean') throw new TypeError('store.create and store.delete must return true or false')
  return result
}

const EMPTY_PAGE: EncodedPage = { plants: [], hasMore: false }

/** Without these checks, plants in the wrong order could result in an incomplete list, or in a list that never ends. */
function requirePage(result: unknown, { limit, after }: PageRequest): EncodedPage {
  if (!isObject(result)) throw invalidOption('the result of store.list', 'an object { plants, hasMore }', result)
  const { plants, hasMore } = result as Partial<Record<keyof Page, unknown>>
  if (!Array.isArray(plants)) throw invalidOption('plants in the result of store.list', 'an array', plants)
  if (typeof hasMore !== 'boolean') throw invalidOption('hasMore in the result of store.list', 'true or false', hasMore)
  if (plants.length > limit) throw new TypeError(`store.list returned ${plants.length} plants, but limit is ${limit}`)
  if (!isAscending(plants as readonly NewPlant[], after)) {
    throw new TypeError(
      'store.list must return plants in ascending order of id, with ids that are bigints greater than after',
    )
  }
  // An empty page ends the list. Without a last plant to continue after, the service would request the same page again.
  return plants.length === 0 ? EMPTY_PAGE : (result as EncodedPage)
}

function isAscending(plants: readonly NewPlant[], after: bigint | undefined): boolean {
  for (const { id } of plants) {
    if (typeof id !== 'bigint' || (after !== undefined && id <= after)) return false
    after = id
  }
  return true
}
