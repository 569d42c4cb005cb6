import { Buffer } from 'node:buffer'
import { inspect } from 'node:util'
import { withDeadline, type MaybePromise } from '../maybe-promise.ts'
import { STORE_METHODS } from '../plants/checked-store.ts'
import type { NewPlant } from '../plants/plant.ts'
import { MAX_PAGE, type Page, type PageRequest, type Store, type StoreMethod } from '../plants/store.ts'

export const UNLIMITED_BYTES: number = 2 ** 30

export async function assertCreate(store: TestedStore, owner: string, plant: NewPlant, isNew = true): Promise<void> {
  const result = await store.create(owner, plant)
  if (result !== isNew) throw createResultError(formatCall('create', owner, plant), isNew, !isNew, result)
}

export async function assertDelete(store: TestedStore, owner: string, id: bigint, hasPlant = true): Promise<void> {
  const result = await store.delete(owner, id)
  if (result !== hasPlant) throw createResultError(formatCall('delete', owner, id), hasPlant, hasPlant, result)
}

function createResultError(call: string, expected: boolean, hasPlant: boolean, result: unknown): Error {
  const plant = hasPlant ? 'a plant with this id' : 'no plant with this id, whatever others have'
  return new Error(`${call} must return ${expected}: this owner has ${plant}. It returned ${quote(result)}.`)
}

/** Lists up to `limit` of the plants, which are all that the owner has after `after`. */
export async function assertList(
  store: TestedStore,
  owner: string,
  plants: readonly NewPlant[],
  { limit = MAX_PAGE, maxBytes = UNLIMITED_BYTES, after }: Partial<PageRequest> = {},
): Promise<void> {
  const request = { limit, maxBytes, after }
  const expected = { plants: plants.slice(0, limit), hasMore: plants.length > limit }
  assertPage(owner, request, await store.list(owner, request), expected)
}

function assertPage(owner: string, request: PageRequest, page: unknown, expected: Page): void {
  const difference = findDifference(page, expected, request)
  if (difference !== undefined) throw new Error(`${formatCall('list', owner, request)} ${difference}`)
}

/** Reads all plants page by page. */
export async function assertPages(
  store: TestedStore,
  owner: string,
  expectedPlants: readonly NewPlant[],
  page: PageRequest,
): Promise<void> {
  for (let remaining = expectedPlants, after: bigint | undefined; remaining.length > 0;) {
    const request = { ...page, after }
    const returned = await store.list(owner, request)
    const { length } = getPlants(returned)
    const plants = remaining.slice(0, length)
    assertPage(owner, request, returned, { plants, hasMore: remaining.length > length })
    const bytes = plants.reduce((sum, { name, tag = '' }) => sum + Buffer.byteLength(name + tag), 0)
    const isFull = length === Math.min(page.limit, remaining.length)
    if (!isFull && bytes < page.maxBytes) {
      throw new Error(
        `${formatCall('list', owner, request)} must go on to limit plants or to maxBytes bytes of names and tags, and to one plant at least. It returned ${length} of ${remaining.length}, with ${bytes} bytes.`,
      )
    }
    after = plants.at(-1)?.id
    remaining = remaining.slice(length)
  }
}

export async function assertEmpty(store: TestedStore): Promise<void> {
  const [plant] = getPlants(await store.list('owner', { limit: 1, maxBytes: UNLIMITED_BYTES }))
  if (plant !== undefined) {
    throw new Error(`create of the options must make a store without plants. This one has ${quote(plant)}.`)
  }
}

function getPlants(page: unknown): readonly unknown[] {
  const { plants } = (page ?? {}) as Partial<Record<keyof Page, unknown>>
  return Array.isArray(plants) ? plants : []
}

export async function assertStored(store: TestedStore, plants: readonly NewPlant[]): Promise<void> {
  await createAll(store, 'owner', plants)
  await assertList(store, 'owner', plants)
}

export async function createAll(store: TestedStore, owner: string, plants: readonly NewPlant[]): Promise<void> {
  for (const plant of plants) await assertCreate(store, owner, plant)
}

export function assertOneSucceeded(method: 'create' | 'delete', results: readonly unknown[]): void {
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
  const invalidIndex = plants.findIndex((plant: Partial<NewPlant> | null | undefined) => typeof plant?.id !== 'bigint')
  if (invalidIndex !== -1) return `must return plants whose id is a bigint. One is ${quote(plants[invalidIndex])}.`
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
  const unexpected = plants.find(({ id }) => !expectedIds!.has(id))
  if (unexpected) return `must return only plants that the owner has. One is ${quote(unexpected)}.`

  for (const [i, { id, name, tag }] of expected.plants.entries()) {
    const plant = plants[i]!
    if (plant.name !== name) return `must return names to the letter. ${describeTextDifference(id, plant.name, name)}`
    if (plant.tag === tag) continue
    if (tag !== undefined) return `must return tags to the letter. ${describeTextDifference(id, plant.tag, tag)}`
    return `must return no tag, or undefined, if the plant has none. That of ${id}n is ${quote(plant.tag)}.`
  }
  if (hasMore || !expected.hasMore) return undefined
  return 'must return hasMore: true if the owner has more plants after these. It returned false.'
}

function describeTextDifference(id: bigint, actual: unknown, expected: string): string {
  if (typeof actual !== 'string') return `That of ${id}n is ${quote(actual)}, and must be ${escapeText(expected)}.`
  let differenceIndex = 0
  // They part where the shorter one ends, at the latest.
  while (actual[differenceIndex] === expected[differenceIndex]) differenceIndex++
  const excerptStart = Math.max(0, differenceIndex - 10)
  const [actualExcerpt, expectedExcerpt] = [actual, expected].map((text) =>
    escapeText(text.slice(excerptStart, excerptStart + 30)),
  )
  return `From character ${excerptStart} on, that of ${id}n is ${actualExcerpt!}…, and must be ${expectedExcerpt!}….`
}

/** A text in printable ASCII, with escapes for the rest. */
function escapeText(text: string): string {
  return JSON.stringify(text).replace(/[^ -~]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
}

/** A store under test. Its results may be anything. */
export type TestedStore = {
  readonly [Name in StoreMethod]: (...args: Parameters<NonNullable<Store[Name]>>) => Promise<unknown>
}

export type ConformanceCheck = (store: TestedStore, seed: number) => Promise<unknown>

/** Gives each call of a store its time. One that takes longer, or throws, fails with an error that names it. */
export function wrapStore(store: Store, timeoutMs: number): TestedStore {
  const methods = store as unknown as Readonly<Record<StoreMethod, ((...args: unknown[]) => unknown) | undefined>>
  const wrappedMethods = (Object.keys(STORE_METHODS) as StoreMethod[]).map((name) => {
    const call = (...args: unknown[]): unknown =>
      awaitCall(formatCall(name, ...args), () => methods[name]?.(...args), timeoutMs)
    return [name, call] as const
  })
  return Object.fromEntries(wrappedMethods) as TestedStore
}

export async function awaitCall<T>(call: string, callback: () => MaybePromise<T>, timeoutMs: number): Promise<T> {
  const timeoutError = new Error(`${call} must settle. It has not within ${timeoutMs} ms.`)
  try {
    return await withDeadline(callback(), timeoutMs, () => timeoutError)
  } catch (cause) {
    if (cause === timeoutError) throw timeoutError
    throw new Error(`${call} must not fail. It failed with ${String(cause)}`, { cause })
  }
}

export const formatCall = (method: StoreMethod, ...args: readonly unknown[]): string =>
  `${method}(${args.map((argument) => quote(argument)).join(', ')})`

export const quote = (value: unknown): string => inspect(value, { breakLength: Infinity, maxStringLength: 40 })
