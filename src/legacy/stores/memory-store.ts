import { wrapEncodedList } from '../plants/encoded-list.ts'
import { encodeFields, type NewPlant } from '../plants/plant.ts'
import type { Store } from '../plants/store.ts'
import { SortedPlants } from './sorted-plants.ts'

/** A store that keeps plants in memory. */
export interface MemoryStore extends Store {
  /**
   * Does nothing, and exists only so that `await using` works. The plants remain until the store is garbage-collected.
   */
  [Symbol.asyncDispose](): Promise<void>
}

const EMPTY_PLANTS = new SortedPlants()

/**
 * Creates a store that keeps plants in memory until the process exits. Its methods return results synchronously.
 *
 * Creating or deleting a plant, or finding the start of a page, takes O(log n) time, no matter in which order ids are
 * added and deleted. A plant takes little more memory than its JSON text.
 *
 * @example
 * import { createServer } from 'node:http'
 * import { createPlantStore, memoryStore } from 'plant-store'
 *
 * const tokens = { 'a-long-random-token': 'ada' }
 * const plants = createPlantStore({ store: memoryStore(), tokens })
 *
 * createServer(plants).listen(3000)
 */
export function memoryStore(): MemoryStore {
  const plantsByOwner = new Map<string, SortedPlants>()

  return {
    create(owner: string, plant: NewPlant): boolean {
      const json = encodeFields(plant)
      let plants = plantsByOwner.get(owner)
      if (plants === undefined) {
        plants = new SortedPlants()
        plantsByOwner.set(owner, plants)
      }
      return plants.add(plant.id, json)
    },
    list: wrapEncodedList((owner, request) => (plantsByOwner.get(owner) ?? EMPTY_PLANTS).list(request)),
    delete(owner: string, id: bigint): boolean {
      const plants = plantsByOwner.get(owner)
      if (plants?.delete(id) !== true) return false
      if (plants.isEmpty) plantsByOwner.delete(owner)
      return true
    },
    [Symbol.asyncDispose]: () => Promise.resolve(),
  }
}
