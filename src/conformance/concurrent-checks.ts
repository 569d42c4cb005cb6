import { setImmediate as nextRound } from 'node:timers/promises'
import type { NewPlant } from '../plants/plant.ts'
import { MAX_PAGE } from '../plants/store.ts'
import { assertCreate, assertDelete, assertList, assertOnce, createAll, MANY_BYTES, plantsOf } from './steps.ts'
import type { Check } from './watched-store.ts'

export const CONCURRENT_CHECKS: Readonly<Record<string, Check>> = {
  async 'creates an id once, however many ask at the same time'(store) {
    const plants = Array.from({ length: 50 }, (_, i) => ({ id: 1n, name: `Fern ${i}` }))
    const results = await Promise.all(plants.map((plant) => store.create('owner', plant)))
    assertOnce('create', results)
    const kept = plants.filter((_, i) => results[i])
    await assertList(store, 'owner', kept)
  },

  async 'deletes a plant once, however many ask at the same time'(store) {
    await createAll(store, 'owner', plantsOf([1n, 2n]))
    const results = await Promise.all(Array.from({ length: 50 }, () => store.delete('owner', 1n)))
    assertOnce('delete', results)
    await assertList(store, 'owner', plantsOf([2n]))
  },

  async 'gives each of many operations at the same time its own result'(store) {
    const ids = Array.from({ length: 300 }, (_, i) => BigInt(i))
    const isThere = (id: bigint): boolean => id % 3n === 0n
    const isWanted = (id: bigint): boolean => id % 2n === 0n
    await createAll(store, 'owner', plantsOf(ids.filter(isThere)))
    await Promise.all(
      plantsOf(ids).map((plant) => {
        if (isWanted(plant.id)) return assertCreate(store, 'owner', plant, !isThere(plant.id))
        return assertDelete(store, 'owner', plant.id, isThere(plant.id))
      }),
    )
    await assertList(store, 'owner', plantsOf(ids.filter(isWanted)))
  },

  async 'keeps owners apart that ask at the same time'(store) {
    const owners = Array.from({ length: 50 }, (_, i) => `owner ${i}`)
    const plantsOfOwner = (owner: string): NewPlant[] => [0n, 1n].map((id) => ({ id, name: owner }))
    await Promise.all(owners.map((owner) => createAll(store, owner, plantsOfOwner(owner))))
    await Promise.all(owners.map((owner) => assertList(store, owner, plantsOfOwner(owner))))
    await Promise.all(owners.map((owner, i) => assertDelete(store, owner, BigInt(i % 2))))
    const left = (owner: string, i: number): NewPlant[] => plantsOfOwner(owner).toSpliced(i % 2, 1)
    await Promise.all(owners.map((owner, i) => assertList(store, owner, left(owner, i))))
  },

  async 'gives each of many lists at the same time its own page'(store) {
    const plants = plantsOf(Array.from({ length: 50 }, (_, i) => BigInt(i)))
    await createAll(store, 'owner', plants)
    await Promise.all(
      plants.flatMap(({ id: after }, i) =>
        [3, 7].map((limit) => assertList(store, 'owner', plants.slice(i + 1, i + 1 + limit), { limit, after })),
      ),
    )
  },

  async 'lists what was created and deleted before, while others list too'(store) {
    const plants = plantsOf(Array.from({ length: 20 }, (_, i) => BigInt(i)))
    const request = { limit: MAX_PAGE, maxBytes: MANY_BYTES, after: undefined }
    const list = (): Promise<unknown> => store.list('owner', request)
    const assertListed = async (write: () => Promise<void>, expected: readonly NewPlant[]): Promise<void> => {
      await Promise.all([list(), write().then(() => assertList(store, 'owner', expected, request))])
    }
    let isDone = false
    // A write may take longer than the list that began with it. These lists begin meanwhile.
    const listAllTheTime = async (): Promise<void> => {
      while (!isDone) await Promise.all([list(), nextRound()])
    }
    const createAndDelete = async (): Promise<void> => {
      for (const [i, plant] of plants.entries()) {
        await assertListed(() => assertCreate(store, 'owner', plant), plants.slice(0, i + 1))
      }
      for (const [i, { id }] of plants.entries()) {
        await assertListed(() => assertDelete(store, 'owner', id), plants.slice(i + 1))
      }
    }
    await Promise.all([listAllTheTime(), createAndDelete().finally(() => (isDone = true))])
  },
}
