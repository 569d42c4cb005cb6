import { andThen, withDeadline, type MaybePromise } from '../maybe-promise.ts'
import { shortListsOf, type ListShort } from './short-list.ts'
import { StoreUnavailableError, type Page, type PageRequest, type Store } from './store.ts'

/** The methods of a store, and which of them it must have. */
export const STORE_METHODS: {
  readonly [Name in keyof Required<Store>]: undefined extends Store[Name] ? 'optional' : 'required'
} = {
  create: 'required',
  list: 'required',
  delete: 'required',
  ping: 'optional',
  close: 'optional',
}

/** A store whose results are checked. It has the methods that the operations call. */
export type CheckedStore = Pick<Required<Store>, 'create' | 'list' | 'delete'> & { readonly listShort: ListShort }

/**
 * Limits the time of a store's calls, and checks their results: a store that returns `undefined` must not tell a client
 * that its plant is kept.
 */
export function checkStore(store: Store, timeoutMs: number): CheckedStore {
  function withTimeout(result: MaybePromise<unknown>): MaybePromise<unknown> {
    return withDeadline(result, timeoutMs, () => {
      return new StoreUnavailableError(`The store did not answer within ${timeoutMs} ms.`, { isOutcomeUnknown: true })
    })
  }
  return {
    create: (owner, plant) => andThen(withTimeout(store.create(owner, plant)), requireBoolean),
    listShort: (owner, query) => shortListsOf(store)?.(owner, query),
    list: (owner, request) => andThen(withTimeout(store.list(owner, request)), (page) => requirePage(page, request)),
    delete: (owner, id) => andThen(withTimeout(store.delete(owner, id)), requireBoolean),
  }
}

function requireBoolean(result: unknown): boolean {
  if (typeof result !== 'boolean') throw new TypeError('create and delete of a store must return true or false')
  return result
}

/** A page that does not lead on from its cursor would be read for ever. */
function requirePage(result: unknown, { limit, after }: PageRequest): Page {
  if (Array.isArray(result) && result.length <= limit) {
    const page = result as Page
    const last = page.at(-1)
    if (last === undefined) return page
    if (typeof last.id === 'bigint' && (after === undefined || last.id > after)) return page
  }
  throw new TypeError('list of a store must return an array of at most limit plants, ascending and beyond after')
}
