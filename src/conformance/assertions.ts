import { Buffer } from 'node:buffer'
import { inspect } from 'node:util'
import { withDeadline, type MaybePromise } from '../legacy/maybe-promise.ts'
import { STORE_METHODS } from '../legacy/plants/checked-store.ts'
import type { NewPlant } from '../legacy/plants/plant.ts'
import { MAX_PAGE, type Page, type PageRequest, type Store, type StoreMethod } from '../legacy/plants/store.ts'

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
  const reason = hasPlant
    ? 'this owner has a plant with this id'
    : "this owner doesn't have a plant with this id, and plants of other owners don't count"
  return new Error(`${call} returned ${quote(result)} instead of ${expected}: ${reason}.`)
}

/**
 * Asserts that `list` returns the first `limit` of the plants.
 * @param plants all of the owner's plants with ids greater than `after`
 */
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

/** Asserts that pagination returns all of the plants, and that no page ends too early. */
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
        `${formatCall('list', owner, request)} ended the page too early: it returned ${length} of ${remaining.length} plants, with ${bytes} bytes of names and tags. A page may end before limit only if its names and tags add up to maxBytes.`,
      )
    }
    after = plants.at(-1)?.id
    remaining = remaining.slice(length)
  }
}

export async function assertEmpty(store: TestedStore): Promise<void> {
  const [plant] = getPlants(await store.list('owner', { limit: 1, maxBytes: UNLIMITED_BYTES }))
  if (plant !== undefined) {
    throw new Error(
      `The create option returned a store that already contains ${quote(plant)}. It must return an empty store each time.`,
    )
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
    `${count} of ${results.length} concurrent ${method} calls with the same id returned true. Exactly one must return true, and the others false.`,
  )
}

export const plantsOf = (ids: readonly bigint[]): NewPlant[] =>
  ids.map((id) => ({ id, name: `Plant ${id}`, tag: `Tag ${id}` }))

const MEMBERS = ['id', 'name', 'tag'] as const

export function findDifference(page: unknown, expected: Page, { limit, after }: PageRequest): string | undefined {
  const returned = (page ?? {}) as Partial<Record<keyof Page, unknown>>
  if (!Array.isArray(returned.plants)) return `returned ${quote(page)} instead of an object with a plants array.`
  const { plants, hasMore } = returned as Page
  if (typeof hasMore !== 'boolean') return `returned ${quote(hasMore)} as hasMore, which must be true or false.`
  const invalidIndex = plants.findIndex((plant: Partial<NewPlant> | null | undefined) => typeof plant?.id !== 'bigint')
  if (invalidIndex !== -1) return `returned a plant whose id isn't a bigint: ${quote(plants[invalidIndex])}.`
  for (const plant of plants) {
    const inherited = MEMBERS.find((name) => plant[name] !== undefined && !Object.hasOwn(plant, name))
    if (inherited) return `returned a plant whose ${inherited} isn't an own property: ${quote(plant)}.`
  }

  if (plants.length > limit) return `returned ${plants.length} plants, although limit is ${limit}.`
  for (const [i, { id }] of plants.entries()) {
    const previous = plants[i - 1]?.id
    if (after !== undefined && id <= after) return `returned plant ${id}n, whose id isn't greater than after.`
    if (previous !== undefined && id <= previous) {
      return `returned plant ${id}n after plant ${previous}n. Plants must be sorted by ascending id, without duplicates.`
    }
  }

  const [ids, expectedIds] = [plants, expected.plants].map((list) => new Set(list.map(({ id }) => id)))
  const missing = expected.plants.find(({ id }) => !ids!.has(id))
  if (missing) return `didn't return plant ${missing.id}n, which the owner has.`
  const unexpected = plants.find(({ id }) => !expectedIds!.has(id))
  if (unexpected) return `returned a plant that the owner doesn't have: ${quote(unexpected)}.`

  for (const [i, { id, name, tag }] of expected.plants.entries()) {
    const plant = plants[i]!
    if (plant.name !== name) return describeTextDifference('name', id, plant.name, name)
    if (plant.tag === tag) continue
    if (tag !== undefined) return describeTextDifference('tag', id, plant.tag, tag)
    return `returned ${quote(plant.tag)} as the tag of plant ${id}n, which has no tag. Omit the tag or return undefined.`
  }
  if (hasMore || !expected.hasMore) return undefined
  return 'returned hasMore: false, although the owner has more plants after these.'
}

function describeTextDifference(member: 'name' | 'tag', id: bigint, actual: unknown, expected: string): string {
  const subject = `returned a wrong ${member} for plant ${id}n`
  if (typeof actual !== 'string') return `${subject}: ${quote(actual)} instead of ${escapeText(expected)}.`
  let differenceIndex = 0
  // The strings differ, so the loop ends at the end of the shorter string at the latest, where indexing yields
  // undefined.
  while (actual[differenceIndex] === expected[differenceIndex]) differenceIndex++
  const excerptStart = Math.max(0, differenceIndex - 10)
  const [actualExcerpt, expectedExcerpt] = [actual, expected].map((text) =>
    escapeText(text.slice(excerptStart, excerptStart + 30)),
  )
  return `${subject}: starting at character ${excerptStart}, ${actualExcerpt!}… instead of ${expectedExcerpt!}….`
}

/** Quotes a string in printable ASCII, with escapes for all other characters. */
function escapeText(text: string): string {
  return JSON.stringify(text).replace(/[^ -~]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
}

/** A store under test: its methods are async, and their results are unchecked. */
export type TestedStore = {
  readonly [Name in StoreMethod]: (...args: Parameters<NonNullable<Store[Name]>>) => Promise<unknown>
}

export type ConformanceCheck = (store: TestedStore, context: CheckContext) => Promise<unknown>

interface CheckContext {
  readonly seed: number
  readonly hasPing: boolean
  /** Runs a function while the store's writes fail. */
  readonly whileBroken: <T>(call: () => Promise<T>) => Promise<T>
}

/**
 * Wraps a store so that calls time out after `timeoutMs`, and so that errors name the call that failed.
 * @param ownerSuffix appended to each owner
 */
export function wrapStore(store: Store, timeoutMs: number, ownerSuffix = ''): TestedStore {
  const methods = store as unknown as Readonly<Record<StoreMethod, ((...args: unknown[]) => unknown) | undefined>>
  const wrappedMethods = (Object.keys(STORE_METHODS) as StoreMethod[]).map((name) => {
    const call = (...given: unknown[]): unknown => {
      const args = given.map((argument, i) => (i === 0 ? `${String(argument)}${ownerSuffix}` : argument))
      return awaitCall(formatCall(name, ...args), () => methods[name]?.(...args), timeoutMs)
    }
    return [name, call] as const
  })
  return Object.fromEntries(wrappedMethods) as TestedStore
}

export async function awaitCall<T>(call: string, callback: () => MaybePromise<T>, timeoutMs: number): Promise<T> {
  const timeoutError = new Error(`${call} timed out after ${timeoutMs} ms.`)
  try {
    return await withDeadline(callback(), timeoutMs, () => timeoutError)
  } catch (cause) {
    if (cause === timeoutError) throw timeoutError
    throw new Error(`${call} failed: ${String(cause)}`, { cause })
  }
}

const formatCall = (method: StoreMethod, ...args: readonly unknown[]): string =>
  `${method}(${args.map((argument) => quote(argument)).join(', ')})`

export const quote = (value: unknown): string => inspect(value, { breakLength: Infinity, maxStringLength: 40 })
