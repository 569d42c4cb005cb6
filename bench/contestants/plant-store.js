// The built package on node:http with its memory store.
import { createServer } from 'node:http'
import { announce, TOKEN } from './shared.js'

const { createPlantStore } = await import(new URL('index.js', process.env.BENCH_DIST))

const server = createServer(createPlantStore({ tokens: { [TOKEN]: 'bench' } }))
server.listen(0, '127.0.0.1', () => announce(server))
