// A service with a given number of plants.
import { createServer } from 'node:http'
import { createPlantStore, memoryStore } from '../../dist/index.js'

export default function listen({ token, count }) {
  const store = memoryStore()
  for (let n = 0; n < count; n++)
    store.create('bench', { id: BigInt(n), name: `Monstera deliciosa ${n}`, tag: 'tropical' })
  return createServer(createPlantStore({ tokens: { [token]: 'bench' }, store })).listen(0, '127.0.0.1')
}
