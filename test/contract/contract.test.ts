import assert from 'node:assert/strict'
import { after, before, suite, test } from 'node:test'
import { createPlantStore } from '../../src/index.ts'
import { connectTo, type Client } from '../support/client.ts'
import { authenticate, CONTRACT_CASES, type ContractCase } from './cases.ts'
import { post } from '../support/service.ts'
import { HOST_BODY, HOSTS, type Host, type Mounted } from './hosts.ts'

const NO_RESOURCE = 404_00

/** What a row is answered in a host. */
function expected(row: ContractCase, { adds, passesOn }: Host): object {
  const { name, status, headers, body } = row
  if (passesOn && body.startsWith(`{"error":${NO_RESOURCE},`)) return { name, status: 200, body: HOST_BODY }
  const length = status === 204 ? {} : { 'content-length': String(Buffer.byteLength(body)) }
  return { name, status, headers: { ...adds, ...length, ...headers }, body }
}

for (const host of HOSTS) {
  suite(host.name, () => {
    let server: Mounted
    let client: Client
    before(async () => {
      server = await host.mount(createPlantStore({ authenticate, basePath: host.basePath }))
      client = connectTo(host.protocol, server.port)
    })
    after(async () => {
      client.close()
      await server.close()
    })

    const isHttp1 = host.protocol.startsWith('http')
    for (const [group, rows] of Object.entries(CONTRACT_CASES)) {
      test(`answers as the contract says: ${group}`, async () => {
        for (const [i, row] of rows.entries()) {
          // Some versions of Node refuse too many fields themselves, and each host has words for that.
          if ((row.isHttp1Only && !isHttp1) || row.status === 431) continue
          const token = `${group}-${i}`.replaceAll(' ', '-')
          const prefix = host.prefix + host.basePath
          for (const body of row.given) {
            const request = post(token, body)
            assert.equal((await client.send({ ...request, path: prefix + request.path })).status, 200)
          }
          const request = row.request(token)

          const { status, headers, body } = await client.send({ ...request, path: prefix + request.path })

          const { name } = row
          const received = body === HOST_BODY ? { name, status, body } : { name, status, headers, body }
          assert.deepEqual(received, expected(row, host))
        }
      })
    }
  })
}
