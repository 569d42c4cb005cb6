import { andThen, withDeadline, type MaybePromise } from '../maybe-promise.ts'
import { shortListsOf, type ListShort } from './short-list.ts'
import { StoreUnavailableError, type Page, type PageRequest, type Store } from './store.ts'

/** Which methods a store must have; the others it may have. */
export const STORE_METHODS: {
  readonly [Name in keyof Required<Store>]: undefined extends Store[Name] ? 'optional' : 'required'
} = {
  create: 'required',
  list: 'required',
  delete: 'required',
  ping: 'optional',
  close: 'optional',
}

/** What is wrong with the methods of a store: the name of the first that is missing or no function, and what is there. */
export function findWrongMethod(store: object): { readonly name: string; readonly value: unknown } | undefined {
  for (const [name, need] of Object.entries(STORE_METHODS)) {
    const value: unknown = Reflect.get(store, name)
    if (typeof value !== 'function' && (need === 'required' || value !== undefined)) return { name, value }
  }
  return undefined
}

/** A store whose results can be relied on. It has what the operations call; what is optional in a store has a default. */
export type CheckedStore = Pick<Required<Store>, 'create' | 'list' | 'delete'> & { readonly listShort: ListShort }

/**
 * Calls a store and believes nothing: a call has its time, and a result of the wrong kind is a fault. Otherwise a client
 * would be told that a plant is kept because a store returned `undefined`.
 * @param timeoutMs how long a call may take
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
