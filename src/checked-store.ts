import { withDeadline } from './deadline.ts'
import { HttpError } from './http/errors.ts'
import type { NewPlant } from './plant.ts'
import type { Page, Store } from './store.ts'

/**
 * Calls a store and believes nothing: a call has its time, and an answer of the wrong kind is a fault. Otherwise a
 * client would be told that a plant is kept because a store answered `undefined`.
 * @param timeoutMs how long a call may take
 */
export function checkedStore(store: Store, timeoutMs: number): Pick<Store, 'create' | 'list' | 'delete'> {
  function inTime<T>(result: T | PromiseLike<T>): T | Promise<T> {
    return withDeadline(result, timeoutMs, () => new HttpError('storeTimeout'))
  }
  return {
    async create(owner, plant) {
      const isCreated: unknown = await inTime(store.create(owner, plant))
      if (typeof isCreated !== 'boolean') throw new TypeError('store.create must answer true or false')
      return isCreated
    },
    async list(owner, page) {
      const plants: unknown = await inTime(store.list(owner, page))
      if (!isPage(plants, page)) {
        throw new TypeError('store.list must answer an array of at most limit plants, ascending, each after the cursor')
      }
      return plants
    },
    async delete(owner, id) {
      const isDeleted: unknown = await inTime(store.delete(owner, id))
      if (typeof isDeleted !== 'boolean') throw new TypeError('store.delete must answer true or false')
      return isDeleted
    },
  }
}

/** A page that does not advance would be read for ever. */
function isPage(plants: unknown, { limit, after }: Page): plants is readonly NewPlant[] {
  if (!Array.isArray(plants) || plants.length > limit) return false
  const last = plants.at(-1) as NewPlant | undefined
  return last === undefined || (typeof last.id === 'bigint' && (after === undefined || last.id > after))
}
