import { after, before, suite, test } from 'node:test'
import { createPlantStore } from '../../src/index.ts'
import { connectTo, type Client } from '../support/wire/client.ts'
import { authenticate, CONTRACT_CASES, type ContractCase } from './cases.ts'
import { checkCases, type Place } from './check-cases.ts'
import { HOST_BODY, HOSTS, type Host, type Mounted } from './hosts.ts'

const NO_RESOURCE = 404_00

/** What a row is answered in a host. Of what the host answers itself only status and body matter. */
function expected({ status, headers, body }: ContractCase, { adds, passesOn }: Host): ReturnType<Place['expected']> {
  if (passesOn && body.startsWith(`{"error":${NO_RESOURCE},`)) return { status: 200, headers: {}, body: HOST_BODY }
  const length = status === 204 ? {} : { 'content-length': String(Buffer.byteLength(body)) }
  return { status, headers: { ...adds, ...length, ...headers }, body }
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

    const place: Place = {
      prefix: host.prefix + host.basePath,
      isHttp1: host.protocol.startsWith('http'),
      expected: (row) => expected(row, host),
      received: (answer) => (answer.body === HOST_BODY ? { ...answer, headers: {} } : answer),
    }
    for (const [group, rows] of Object.entries(CONTRACT_CASES)) {
      test(`answers as the contract says: ${group}`, () => checkCases(client, group, rows, place))
    }
  })
}
