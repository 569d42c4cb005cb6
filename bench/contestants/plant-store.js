// The project as it is published: the build in dist/, on its memory store.
import { createServer } from 'node:http'
import { createPlantStore } from '../../dist/index.js'

export default function listen({ token }) {
  return createServer(createPlantStore({ tokens: { [token]: 'bench' } })).listen(0, '127.0.0.1')
}
