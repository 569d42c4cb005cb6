import type { NewPlant } from '../plants/plant.ts'
import { MAX_PAGE, type PageRequest } from '../plants/store.ts'
import { findDifference } from './page-differences.ts'
import { callText, quote, type WatchedStore } from './watched-store.ts'

export const MANY_BYTES: number = 2 ** 30

export async function assertCreate(store: WatchedStore, owner: string, plant: NewPlant, isNew = true): Promise<void> {
  const result = await store.create(owner, plant)
  if (result !== isNew) throw wrongResult(callText('create', owner, plant), isNew, !isNew, result)
}

export async function assertDelete(store: WatchedStore, owner: string, id: bigint, isThere = true): Promise<void> {
  const result = await store.delete(owner, id)
  if (result !== isThere) throw wrongResult(callText('delete', owner, id), isThere, isThere, result)
}

function wrongResult(call: string, expected: boolean, isThere: boolean, result: unknown): Error {
  const plant = isThere ? 'a plant with this id' : 'no plant with this id, whatever others have'
  return new Error(`${call} must return ${expected}: this owner has ${plant}. It returned ${quote(result)}.`)
}

export async function assertList(
  store: WatchedStore,
  owner: string,
  expected: readonly NewPlant[],
  { limit = MAX_PAGE, maxBytes = MANY_BYTES, after }: Partial<PageRequest> = {},
): Promise<void> {
  const request = { limit, maxBytes, after }
  assertPage(owner, request, await store.list(owner, request), expected)
}

function assertPage(owner: string, request: PageRequest, page: unknown, expected: readonly NewPlant[]): void {
  const difference = findDifference(page, expected, request)
  if (difference !== undefined) throw new Error(`${callText('list', owner, request)} ${difference}`)
}

/** Reads all plants page by page. The service would take a page that ends early for the last, so none may. */
export async function assertPages(
  store: WatchedStore,
  owner: string,
  expected: readonly NewPlant[],
  page: Pick<PageRequest, 'limit' | 'maxBytes'>,
): Promise<void> {
  for (let left = expected, after: bigint | undefined; left.length > 0;) {
    const request = { ...page, after }
    const returned = await store.list(owner, request)
    const length = Array.isArray(returned) ? returned.length : 0
    const plants = left.slice(0, length)
    assertPage(owner, request, returned, plants)
    const bytes = plants.reduce((sum, { name, tag = '' }) => sum + Buffer.byteLength(name + tag), 0)
    const isFull = length === Math.min(page.limit, left.length)
    if (!isFull && bytes < page.maxBytes) {
      throw new Error(
        `${callText('list', owner, request)} must go on to limit plants or to maxBytes bytes of names and tags, and to one plant at least. It returned ${length} of ${left.length}, with ${bytes} bytes.`,
      )
    }
    after = plants.at(-1)?.id
    left = left.slice(length)
  }
}

/** A store that is made for a test must not have what another test left. */
export async function assertEmpty(store: WatchedStore): Promise<void> {
  const page = await store.list('owner', { limit: 1, maxBytes: MANY_BYTES })
  if (Array.isArray(page) && page.length > 0) {
    throw new Error(`create of the options must make a store without plants. This one has ${quote(page[0])}.`)
  }
}

export async function assertKept(store: WatchedStore, plants: readonly NewPlant[]): Promise<void> {
  await createAll(store, 'owner', plants)
  await assertList(store, 'owner', plants)
}

export async function createAll(store: WatchedStore, owner: string, plants: readonly NewPlant[]): Promise<void> {
  for (const plant of plants) await assertCreate(store, owner, plant)
}

export function assertOnce(method: 'create' | 'delete', results: readonly unknown[]): void {
  const count = results.filter((result) => result === true).length
  if (count === 1 && results.every((result) => typeof result === 'boolean')) return
  throw new Error(
    `Of ${results.length} calls of ${method} for one id at the same time, one must return true and the others false. ${count} returned true.`,
  )
}

export function plantsOf(ids: readonly bigint[]): NewPlant[] {
  return ids.map((id) => ({ id, name: `Plant ${id}`, tag: `Tag ${id}` }))
}
