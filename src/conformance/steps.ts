import assert from 'node:assert/strict'
import type { MaybePromise } from '../maybe-promise.ts'
import type { NewPlant } from '../plants/plant.ts'
import { MAX_PAGE, type PageRequest, type Store } from '../plants/store.ts'

/** More bytes than the plants of any test have. */
export const MANY_BYTES: number = 2 ** 30

export async function assertList(
  store: Store,
  owner: string,
  expected: readonly NewPlant[],
  { limit = MAX_PAGE, maxBytes = MANY_BYTES, after }: Partial<PageRequest> = {},
  message?: string,
): Promise<void> {
  const plants = await store.list(owner, { limit, maxBytes, after })
  assert.ok(Array.isArray(plants), 'a list must be an array')
  assertSame(plants, expected, message)
}

/** Reads all plants page by page. The service would take a page that ends early for the last, so none may. */
export async function assertPages(
  store: Store,
  owner: string,
  expected: readonly NewPlant[],
  page: Pick<PageRequest, 'limit' | 'maxBytes'>,
): Promise<void> {
  for (let left = expected, after: bigint | undefined; left.length > 0;) {
    const plants = await store.list(owner, { ...page, after })
    assertSame(plants, left.slice(0, plants.length), `after ${after}`)
    const bytes = plants.reduce((sum, { name, tag = '' }) => sum + Buffer.byteLength(name + tag), 0)
    const isFull = plants.length === Math.min(page.limit, left.length)
    const mayEnd = isFull || (plants.length > 0 && bytes >= page.maxBytes)
    assert.ok(mayEnd, `the page after ${after} ends at ${bytes} of ${page.maxBytes} bytes`)
    after = plants.at(-1)?.id
    left = left.slice(plants.length)
  }
}

/** A store may return plants of a class of its own, so only their members are compared. */
function assertSame(plants: readonly NewPlant[], expected: readonly NewPlant[], message?: string): void {
  const members = ({ id, name, tag }: NewPlant): NewPlant => ({ id, name, tag })
  assert.deepEqual(plants.map(members), expected.map(members), message)
}

export async function assertKept(store: Store, plants: readonly NewPlant[]): Promise<void> {
  await createAll(store, 'owner', plants)
  await assertList(store, 'owner', plants)
}

export async function createAll(store: Store, owner: string, plants: readonly NewPlant[]): Promise<void> {
  for (const plant of plants) assert.equal(await store.create(owner, plant), true, `create ${plant.id}`)
}

/** Starts every operation before it waits for any. */
export function atOnce(operations: readonly (() => MaybePromise<boolean>)[]): Promise<boolean[]> {
  return Promise.all(operations.map(async (operation) => operation()))
}

export function plantsOf(ids: readonly bigint[]): NewPlant[] {
  return ids.map((id) => ({ id, name: `Plant ${id}`, tag: 'test' }))
}
