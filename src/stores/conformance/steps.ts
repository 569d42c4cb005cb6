import assert from 'node:assert/strict'
import type { NewPlant } from '../../plant.ts'
import { MAX_PAGE, type Page, type Store } from '../../store.ts'

/** A store may answer with plants of a class of its own, so only their members are compared. */
export async function assertList(
  store: Store,
  owner: string,
  expected: readonly NewPlant[],
  page: Page = { limit: MAX_PAGE },
  message?: string,
): Promise<void> {
  const plants = await store.list(owner, page)
  assert.ok(Array.isArray(plants), 'a list must be an array')
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
export function atOnce(operations: readonly (() => boolean | Promise<boolean>)[]): Promise<boolean[]> {
  return Promise.all(operations.map(async (operation) => operation()))
}

export function plantsOf(ids: readonly bigint[]): NewPlant[] {
  return ids.map((id) => ({ id, name: `Plant ${id}`, tag: 'test' }))
}
