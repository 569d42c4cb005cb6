// Joining the stored JSON texts of a page vs. JSON.stringify of plain objects.
import { listEncodedPlants } from '../../dist/plants/encoded-list.js'
import { closeObject, encodeFields } from '../../dist/plants/plant.js'
import { MAX_PAGE_BYTES } from '../../dist/plants/store.js'
import { memoryStore } from '../../dist/stores/memory-store.js'
import { compare } from './compare.ts'

for (const length of [10, 100, 999]) {
  const store = memoryStore()
  const plants = []
  for (let n = 0; n < length; n++) {
    const plant = { name: `Monstera deliciosa ${n}`, tag: 'tropical' }
    plants.push(plant)
    store.create('bench', { id: BigInt(n), ...plant })
  }
  const { plants: page } = listEncodedPlants(store, 'bench', { limit: 1000, maxBytes: MAX_PAGE_BYTES })
  const encodeList = () => `[{${closeObject(page.map(encodeFields).join(''))}]`
  if (encodeList() !== JSON.stringify(plants)) throw new Error('The two JSON texts differ.')

  compare(`JSON text of a page of ${length} plants, and its length in bytes`, {
    'JSON.stringify(plants)': () => Buffer.byteLength(JSON.stringify(plants)),
    'joined texts': () => encodeList().length,
  })
}
