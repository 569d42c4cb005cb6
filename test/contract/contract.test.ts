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
const SERVERS: readonly (readonly [name: string, protocol: Protocol, create: (plantStore: PlantStore) => Server])[] = [
  ['node:http', 'http', (plantStore) => createServer(plantStore)],
  [
    'node:http with optimizeEmptyRequests',
    'http',
    (plantStore) => createServer({ optimizeEmptyRequests: true }, plantStore),
  ],
  ['node:http2', 'h2c', (plantStore) => createHttp2Server(plantStore)],
  [
    'node:http2 over TLS, with HTTP/1 requests',
    'https',
    (plantStore) => createSecureServer({ ...TLS, allowHTTP1: true }, plantStore),
  ],
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
