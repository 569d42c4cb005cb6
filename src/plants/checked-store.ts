import { clearTimeout, setTimeout } from 'node:timers'
import { inspect } from 'node:util'
import type { NewPlant } from './plant.ts'
import { StoreUnavailableError, then, type MaybePromise, type Page, type PageRequest, type Store } from './store.ts'

/** The default of the option `storeTimeoutMs`. Timeouts of the stores are derived from it. */
export const DEFAULT_STORE_TIMEOUT_MS = 10_000

/** A store whose calls time out, and whose results are valid, so that `undefined` never means success. */
export type CheckedStore = Pick<Store, 'create' | 'list' | 'delete'>

export function createCheckedStore(store: Store, timeoutMs: number): CheckedStore {
  const withTimeout = <T>(result: MaybePromise<T>): MaybePromise<T> =>
    withDeadline(result, timeoutMs, 'The store', true)
  return {
    create: (owner, plant) => then(withTimeout(store.create(owner, plant)), requireBoolean),
    list: (owner, request) => then(withTimeout(store.list(owner, request)), (page) => requirePage(page, request)),
    delete: (owner, id) => then(withTimeout(store.delete(owner, id)), requireBoolean),
  }
}

/**
 * Limits the duration of a call: if the promise or thenable that it returned doesn't settle in time, the returned
 * promise rejects with a {@link StoreUnavailableError}, and a late result is ignored.
 * @param subject what was called, as the subject of the error message
 */
export function withDeadline<T>(
  result: MaybePromise<T>,
  ms: number,
  subject: string,
  isOutcomeUnknown = false,
): MaybePromise<T> {
  if (typeof (result as PromiseLike<T> | null | undefined)?.then !== 'function') return result
  return new Promise<T>((resolve, reject) => {
    const timer = setTimeout(() => {
      reject(new StoreUnavailableError(`${subject} did not respond within ${ms} ms.`, { isOutcomeUnknown }))
    }, ms)
    Promise.resolve(result)
      .finally(() => clearTimeout(timer))
      .then(resolve, reject)
  })
}

/** Shows a value of the host in a message. Objects are shown without their members, which might be secrets. */
export const showValue = (value: unknown): string => inspect(value, { depth: -1, customInspect: false })

function requireBoolean(result: unknown): boolean {
  if (typeof result !== 'boolean') throw new TypeError('store.create and store.delete must return true or false')
  return result
}

/** Without these checks, plants in the wrong order could result in an incomplete list, or in a list that never ends. */
function requirePage(page: Page, { limit, after }: PageRequest): Page {
  const { plants, hasMore } = Object(page) as Partial<Page>
  if (!Array.isArray(plants) || typeof hasMore !== 'boolean') {
    throw new TypeError(`store.list must return { plants: [...], hasMore: true or false }, not ${showValue(page)}`)
  }
  if (plants.length > limit) throw new TypeError(`store.list returned ${plants.length} plants, but limit is ${limit}`)
  let previous = after
  for (const { id } of plants as readonly NewPlant[]) {
    if (typeof id !== 'bigint' || (previous !== undefined && id <= previous)) {
      throw new TypeError('store.list must return plants in ascending order of id, with bigint ids greater than after')
    }
    previous = id
  }
  return page
}
