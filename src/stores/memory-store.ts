import { wrapEncodedList } from '../plants/encoded-list.ts'
import { encodeFields, type NewPlant } from '../plants/plant.ts'
import type { Store } from '../plants/store.ts'
import { SortedPlants } from './sorted-plants.ts'

/** A store of plants in memory. */
export interface MemoryStore extends Store {
  /** Does nothing, at the end of an `await using`: the plants live as long as the store is referenced. */
  [Symbol.asyncDispose](): Promise<void>
}

const EMPTY_PLANTS = new SortedPlants()

/**
 * Keeps plants in memory, while the process lives. Every method returns its result at once, without a promise.
 *
 * Creating or deleting a plant, and finding where a page starts, takes O(log n), in whatever order ids come and go. A
 * plant takes little more memory than its JSON text.
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
