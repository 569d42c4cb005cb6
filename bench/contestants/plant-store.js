// The built package with its memory store.
import { createServer } from 'node:http'
import { createPlantStore } from '../../dist/index.js'
import { takeFirst } from './helpers.js'

/**
 * @param options.keepsText `false` replaces the memory store, which keeps plants as JSON text, with a `Map` of plants,
 * as in the peers
 */
export default function listen({ token, options }) {
  const store = options?.keepsText === false ? createMapStore() : undefined
  return createServer(createPlantStore({ tokens: { [token]: 'bench' }, store })).listen(0, '127.0.0.1')
}

function createMapStore() {
  const plantsByOwner = new Map([['bench', new Map()]])
  return {
    create(owner, plant) {
      const plants = plantsByOwner.get(owner)
      return !plants.has(plant.id) && plants.set(plant.id, plant) === plants
    },
    list: (owner, { limit }) => takeFirst(plantsByOwner.get(owner), limit),
    delete: (owner, id) => plantsByOwner.get(owner).delete(id),
  }
}
