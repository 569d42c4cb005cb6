import { encodePlant, type EncodedPlant, type NewPlant } from '../plant.ts'
import type { Page, Store } from '../store.ts'
import { PlantTree } from './plant-tree.ts'

/**
 * Keeps plants in memory, while the process lives. Every method answers at once, without a promise.
 *
 * Creating, deleting and finding where a page starts take O(log n), in whatever order ids come and go. Measured at
 * 1,000,000 plants of an owner on Node 20 and 24: 96 bytes a plant at most, of which 72 are its JSON text of 52
 * characters; 2.4 µs for a page of 100, as at 1,000 plants, and up to 2 µs more where the page is not in the
 * processor's caches.
 */
export function memoryStore(): Store {
  const owners = new Map<string, PlantTree>()

  return {
    create(owner: string, plant: NewPlant): boolean {
      const text = flatten(encodePlant(plant))
      let plants = owners.get(owner)
      if (plants === undefined) {
        plants = new PlantTree()
        owners.set(owner, plants)
      }
      return plants.add(plant.id, text)
    },

    list(owner: string, page: Page): readonly EncodedPlant[] {
      return owners.get(owner)?.list(page) ?? []
    },

    delete(owner: string, id: bigint): boolean {
      const plants = owners.get(owner)
      if (plants?.delete(id) !== true) return false
      if (plants.isEmpty) owners.delete(owner)
      return true
    },
  }
}

/**
 * Makes V8 hold a text in one piece. A template's result is a tree of its parts, 200 bytes in five objects for a
 * plant; asking for its length in bytes lays it out flat, 72 bytes in one. Of what does that, this is the quickest
 * on Node 20 to 26 (an index or a search reads the tree as it is on some).
 */
function flatten(text: string): string {
  Buffer.byteLength(text)
  return text
}
