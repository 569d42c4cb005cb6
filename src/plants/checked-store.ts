import { andThen, withDeadline, type MaybePromise } from '../maybe-promise.ts'
import { HttpError } from '../http/errors.ts'
import type { NewPlant } from './plant.ts'
import type { PageRequest, Store } from './store.ts'

/** A store whose answers can be relied on. */
export interface CheckedStore {
  create(owner: string, plant: NewPlant): boolean | Promise<boolean>
  list(owner: string, page: PageRequest): readonly NewPlant[] | Promise<readonly NewPlant[]>
  delete(owner: string, id: bigint): boolean | Promise<boolean>
}

/**
 * Calls a store and believes nothing: a call has its time, and an answer of the wrong kind is a fault. Otherwise a
 * client would be told that a plant is kept because a store answered `undefined`.
 * @param timeoutMs how long a call may take
 */
export function checkStore(store: Store, timeoutMs: number): CheckedStore {
  function inTime(result: MaybePromise<unknown>): unknown {
    return withDeadline(result, timeoutMs, () => new HttpError('storeTimeout'))
  }
  return {
    create: (owner, plant) => andThen(inTime(store.create(owner, plant)), requireBoolean),
    list: (owner, page) => andThen(inTime(store.list(owner, page)), (plants) => requirePage(plants, page)),
    delete: (owner, id) => andThen(inTime(store.delete(owner, id)), requireBoolean),
  }
}

function requireBoolean(answer: unknown): boolean {
  if (typeof answer !== 'boolean') throw new TypeError('create and delete of a store must answer true or false')
  return answer
}

/** A page that does not lead on from its cursor would be read for ever. */
function requirePage(answer: unknown, { limit, after }: PageRequest): readonly NewPlant[] {
  if (Array.isArray(answer) && answer.length <= limit) {
    const plants = answer as NewPlant[]
    const last = plants.at(-1)
    if (last === undefined) return plants
    if (typeof last.id === 'bigint' && (after === undefined || last.id > after)) return plants
  }
  throw new TypeError('list of a store must answer an array of at most limit plants, ascending and beyond after')
}
