import assert from 'node:assert/strict'
import { Buffer } from 'node:buffer'
import { inspect } from 'node:util'
import { DEFAULT_STORE_TIMEOUT_MS, withDeadline } from '../plants/checked-store.ts'
import { TEXT_NAMES, type NewPlant } from '../plants/plant.ts'
import { MAX_PAGE, type MaybePromise, type Page, type PageRequest, type Store } from '../plants/store.ts'

/** A store under test. The errors of its methods say what the store did wrong. */
export class TestedStore {
  readonly store: Store

  constructor(store: Store) {
    this.store = store
  }

  /** Calls a method of the store, and returns its result as it is. */
  call(method: string, ...args: unknown[]): Promise<unknown> {
    const store = this.store as unknown as Record<string, ((...args: unknown[]) => unknown) | undefined>
    return waitFor(formatCall(method, args), () => store[method]?.(...args))
  }

  async create(owner: string, plant: NewPlant, isNew = true): Promise<void> {
    const result = await this.call('create', owner, plant)
    assert.equal(result, isNew, explainResult('create', [owner, plant], result, !isNew))
  }

  async createAll(owner: string, plants: readonly NewPlant[]): Promise<void> {
    for (const plant of plants) await this.create(owner, plant)
  }

  async delete(owner: string, id: bigint, exists = true): Promise<void> {
    const result = await this.call('delete', owner, id)
    assert.equal(result, exists, explainResult('delete', [owner, id], result, exists))
  }

  /**
   * Requires that the page that `list` returns is full and starts with the given plants: all that the owner has after
   * the cursor. Returns the number of plants in the page.
   */
  async list(owner: string, plants: readonly NewPlant[], request: Partial<PageRequest> = {}): Promise<number> {
    const { limit = MAX_PAGE, maxBytes = 2 ** 30, after } = request
    const args = [owner, { limit, maxBytes, after }]
    const page = (await this.call('list', ...args)) as Partial<Page> | undefined
    const call = formatCall('list', args)
    assert.ok(Array.isArray(page?.plants), `${call} returned ${quote(page)} instead of an object with a plants array.`)

    const returned = (page.plants as (NewPlant | null)[]).map((plant) => pickMembers(plant ?? {}))
    assert.ok(returned.length <= limit, `${call} returned ${returned.length} plants, although limit is ${limit}.`)
    const bytes = Buffer.byteLength(returned.flatMap((plant) => TEXT_NAMES.map((name) => plant[name])).join(''))
    const expected = plants.slice(0, bytes < maxBytes ? limit : returned.length).map(pickMembers)
    for (const [i, plant] of expected.entries()) {
      assert.ok(returned[i] !== undefined, `${call} didn't return ${quote(plant)}, which the owner has.`)
      assert.deepEqual(returned[i], plant, `${call} returned ${quote(returned[i])} instead of ${quote(plant)}.`)
    }
    const [unexpected] = returned.slice(expected.length)
    assert.ok(unexpected === undefined, `${call} returned ${quote(unexpected)}, which the owner doesn't have.`)
    const hasMore = plants.length > returned.length
    const isRight = page.hasMore === true || page.hasMore === hasMore
    assert.ok(isRight, `${call} returned hasMore: ${quote(page.hasMore)} instead of ${hasMore}.`)
    return returned.length
  }
}

/** Waits for the result of a function. The error names the call. */
export async function waitFor<T>(call: string, callback: () => MaybePromise<T>): Promise<T> {
  try {
    return await withDeadline(callback(), DEFAULT_STORE_TIMEOUT_MS, call)
  } catch (cause) {
    throw new Error(`${call} failed: ${String(cause)}`, { cause })
  }
}

function explainResult(method: string, args: readonly unknown[], result: unknown, exists: boolean): string {
  const state = exists ? 'has a plant with this id' : "has no plant with this id (those of other owners don't count)"
  return `${formatCall(method, args)} returned ${quote(result)}, although the owner ${state}.`
}

const pickMembers = (plant: Partial<NewPlant>): Partial<NewPlant> =>
  Object.fromEntries((['id', ...TEXT_NAMES] as const).map((name) => [name, plant[name]]))
const formatCall = (method: string, args: readonly unknown[]): string => `${method}(${args.map(quote).join(', ')})`
export const quote = (value: unknown): string => inspect(value, { breakLength: Infinity, maxStringLength: 60 })
