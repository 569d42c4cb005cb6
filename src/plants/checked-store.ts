import { andThen, withDeadline, type MaybePromise } from '../maybe-promise.ts'
import { StoreUnavailableError, type Page, type PageRequest, type Store, type StoreMethod } from './store.ts'

export const STORE_METHODS: {
  readonly [Name in StoreMethod]: undefined extends Store[Name] ? 'optional' : 'required'
} = { create: 'required', list: 'required', delete: 'required', ping: 'optional', close: 'optional' }

export type CheckedStore = Pick<Required<Store>, 'create' | 'list' | 'delete'>

/** Limits the time of a store's calls, and checks their results: `undefined` must not mean that a plant is kept. */
export function checkStore(store: Store, timeoutMs: number): CheckedStore {
  const createError = (): StoreUnavailableError =>
    new StoreUnavailableError(`The store did not answer within ${timeoutMs} ms.`, { isOutcomeUnknown: true })
  const withTimeout = (result: MaybePromise<unknown>) => withDeadline(result, timeoutMs, createError)
  return {
    create: (owner, plant) => andThen(withTimeout(store.create(owner, plant)), requireBoolean),
    list: (owner, request) => andThen(withTimeout(store.list(owner, request)), requirePage, request),
    delete: (owner, id) => andThen(withTimeout(store.delete(owner, id)), requireBoolean),
  }
}

function requireBoolean(result: unknown): boolean {
  if (typeof result !== 'boolean') throw new TypeError('create and delete of a store must return true or false')
  return result
}

/** A list of pages out of order would be wrong and look whole, or would never end. */
function requirePage(result: unknown, { limit, after }: PageRequest): Page {
  if (Array.isArray(result) && result.length <= limit && isAscending(result as Page, after)) return result as Page
  throw new TypeError('list of a store must return an array of at most limit plants, ascending and beyond after')
}

function isAscending(page: Page, after: bigint | undefined): boolean {
  for (const { id } of page) {
    if (typeof id !== 'bigint' || (after !== undefined && id <= after)) return false
    after = id
  }
  return true
}
