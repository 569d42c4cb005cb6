import { Buffer } from 'node:buffer'
import { inspect } from 'node:util'
import { withDeadline, type MaybePromise } from '../maybe-promise.ts'
import { STORE_METHODS } from '../plants/checked-store.ts'
import type { NewPlant } from '../plants/plant.ts'
import { MAX_PAGE, type Page, type PageRequest, type Store, type StoreMethod } from '../plants/store.ts'

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

/** Lists up to `limit` of the plants, which are all that the owner has after `after`. */
export async function assertList(
  store: WatchedStore,
  owner: string,
  plants: readonly NewPlant[],
  { limit = MAX_PAGE, maxBytes = MANY_BYTES, after }: Partial<PageRequest> = {},
): Promise<void> {
  const request = { limit, maxBytes, after }
  const expected = { plants: plants.slice(0, limit), hasMore: plants.length > limit }
  assertPage(owner, request, await store.list(owner, request), expected)
}

function assertPage(owner: string, request: PageRequest, page: unknown, expected: Page): void {
  const difference = findDifference(page, expected, request)
  if (difference !== undefined) throw new Error(`${callText('list', owner, request)} ${difference}`)
}

/** Reads all plants page by page. */
export async function assertPages(
  store: WatchedStore,
  owner: string,
  all: readonly NewPlant[],
  page: PageRequest,
): Promise<void> {
  for (let left = all, after: bigint | undefined; left.length > 0;) {
    const request = { ...page, after }
    const returned = await store.list(owner, request)
    const { length } = plantsIn(returned)
    const plants = left.slice(0, length)
    assertPage(owner, request, returned, { plants, hasMore: left.length > length })
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

export async function assertEmpty(store: WatchedStore): Promise<void> {
  const [plant] = plantsIn(await store.list('owner', { limit: 1, maxBytes: MANY_BYTES }))
  if (plant !== undefined) {
    throw new Error(`create of the options must make a store without plants. This one has ${quote(plant)}.`)
  }
}

function plantsIn(page: unknown): readonly unknown[] {
  const { plants } = (page ?? {}) as Partial<Record<keyof Page, unknown>>
  return Array.isArray(plants) ? plants : []
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

export const plantsOf = (ids: readonly bigint[]): NewPlant[] =>
  ids.map((id) => ({ id, name: `Plant ${id}`, tag: `Tag ${id}` }))

const MEMBERS = ['id', 'name', 'tag'] as const

export function findDifference(page: unknown, expected: Page, { limit, after }: PageRequest): string | undefined {
  const returned = (page ?? {}) as Partial<Record<keyof Page, unknown>>
  if (!Array.isArray(returned.plants)) return `must return an object with an array, plants. It returned ${quote(page)}.`
  const { plants, hasMore } = returned as Page
  if (typeof hasMore !== 'boolean') return `must return hasMore, true or false. It returned ${quote(hasMore)}.`
  const wrong = plants.findIndex((plant: Partial<NewPlant> | null | undefined) => typeof plant?.id !== 'bigint')
  if (wrong !== -1) return `must return plants whose id is a bigint. One is ${quote(plants[wrong])}.`
  const inheriting = plants.find((plant) =>
    MEMBERS.some((name) => plant[name] !== undefined && !Object.hasOwn(plant, name)),
  )
  if (inheriting) {
    return `must return plants whose id, name and tag are own properties. One is ${quote(inheriting)}, whose are not.`
  }

  if (plants.length > limit) return `must return at most limit plants: ${limit}. It returned ${plants.length}.`
  for (const [i, { id }] of plants.entries()) {
    const previous = plants[i - 1]?.id
    if (after !== undefined && id <= after) return `must return only ids greater than after. One is ${id}n.`
    if (previous !== undefined && id <= previous) {
      return `must return plants ascending by id, each once. ${id}n follows ${previous}n.`
    }
  }

  const [ids, expectedIds] = [plants, expected.plants].map((list) => new Set(list.map(({ id }) => id)))
  const missing = expected.plants.find(({ id }) => !ids!.has(id))
  if (missing) return `must return every plant of the owner that is asked for. ${missing.id}n is missing.`
  const foreign = plants.find(({ id }) => !expectedIds!.has(id))
  if (foreign) return `must return only plants that the owner has. One is ${quote(foreign)}.`

  for (const [i, { id, name, tag }] of expected.plants.entries()) {
    const plant = plants[i]!
    if (plant.name !== name) return `must return names to the letter. ${compareTexts(id, plant.name, name)}`
    if (plant.tag === tag) continue
    if (tag !== undefined) return `must return tags to the letter. ${compareTexts(id, plant.tag, tag)}`
    return `must return no tag, or undefined, if the plant has none. That of ${id}n is ${quote(plant.tag)}.`
  }
  if (hasMore || !expected.hasMore) return undefined
  return 'must return hasMore: true if the owner has more plants after these. It returned false.'
}

function compareTexts(id: bigint, actual: unknown, expected: string): string {
  if (typeof actual !== 'string') return `That of ${id}n is ${quote(actual)}, and must be ${spell(expected)}.`
  let start = 0
  // They part where the shorter one ends, at the latest.
  while (actual[start] === expected[start]) start++
  const from = Math.max(0, start - 10)
  const [shown, wanted] = [actual, expected].map((text) => spell(text.slice(from, from + 30)))
  return `From character ${from} on, that of ${id}n is ${shown!}…, and must be ${wanted!}….`
}

/** A text in printable ASCII, with escapes for the rest. */
function spell(text: string): string {
  return JSON.stringify(text).replace(/[^ -~]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
}

/** A store under test. Its results may be anything. */
export type WatchedStore = {
  readonly [Name in StoreMethod]: (...args: Parameters<NonNullable<Store[Name]>>) => Promise<unknown>
}

export type Check = (store: WatchedStore, seed: number) => Promise<unknown>

/** Gives each call of a store its time. One that takes longer, or throws, fails with an error that names it. */
export function watchStore(store: Store, timeoutMs: number): WatchedStore {
  const methods = store as unknown as Readonly<Record<StoreMethod, ((...args: unknown[]) => unknown) | undefined>>
  const watched = (Object.keys(STORE_METHODS) as StoreMethod[]).map((name) => {
    const call = (...args: unknown[]): unknown =>
      settleCall(callText(name, ...args), () => methods[name]?.(...args), timeoutMs)
    return [name, call] as const
  })
  return Object.fromEntries(watched) as WatchedStore
}

export async function settleCall<T>(call: string, act: () => MaybePromise<T>, timeoutMs: number): Promise<T> {
  const late = new Error(`${call} must settle. It has not within ${timeoutMs} ms.`)
  try {
    return await withDeadline(act(), timeoutMs, () => late)
  } catch (cause) {
    if (cause === late) throw late
    throw new Error(`${call} must not fail. It failed with ${String(cause)}`, { cause })
  }
}

export const callText = (method: StoreMethod, ...args: readonly unknown[]): string =>
  `${method}(${args.map((argument) => quote(argument)).join(', ')})`

export const quote = (value: unknown): string => inspect(value, { breakLength: Infinity, maxStringLength: 40 })
