import { createServer } from 'node:http'
import { createServer as createHttp2Server, createSecureServer } from 'node:http2'
import type { Server } from 'node:net'
import { after, before, suite, test } from 'node:test'
import { createPlantStore, type PlantStore } from '../../src/index.ts'
import { connectClient, type Client, type Protocol } from '../support/client.ts'
import { close, listen, getPort } from '../support/service.ts'
import { TLS } from '../support/certificate.ts'
import { testCases } from './check-cases.ts'
import { authenticate } from './contract-cases.ts'

/** The Node core servers that the docs don't show. test/package/frameworks.slow.ts tests all other hosts. */
const SERVERS: readonly (readonly [name: string, protocol: Protocol, create: (plants: PlantStore) => Server])[] = [
  ['node:http', 'http', (plants) => createServer(plants)],
  ['node:http with optimizeEmptyRequests', 'http', (plants) => createServer({ optimizeEmptyRequests: true }, plants)],
  ['node:http2', 'h2c', (plants) => createHttp2Server(plants)],
  ['HTTP/1 on node:http2 over TLS', 'https', (plants) => createSecureServer({ ...TLS, allowHTTP1: true }, plants)],
]

for (const [name, protocol, create] of SERVERS) {
  suite(name, () => {
    let server: Server
    let client: Client
    before(async () => {
      server = create(createPlantStore({ authenticate }))
      await listen(server)
      client = connectClient(protocol, getPort(server))
    })
    after(() => {
      client.close()
      return close(server)
    })

    test('responds as expected to every contract case', (t) =>
      testCases(t, { name, client, isHttp1: protocol.startsWith('http'), runsAllCases: true }))
  })
}
