import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { createPlantStore, memoryStore } from '../../src/index.ts'
import { del, get, post, type Request } from '../support/wire/service.ts'
import { ADAPTERS } from './adapters.ts'
import { authenticate, CONTRACT_CASES } from './cases.ts'
import { checkCases } from './check-cases.ts'

const JSON_FIELDS = { 'content-type': 'application/json' }

for (const { name, call } of ADAPTERS) {
  suite(`a request that ${name} makes up`, { timeout: 60_000 }, () => {
    for (const [group, rows] of Object.entries(CONTRACT_CASES)) {
      test(`is answered as the contract says: ${group}`, async () => {
        const plantStore = createPlantStore({ authenticate })
        const client = { send: (request: Request) => call(plantStore, request) }
        // Nothing tells that a field was given twice.
        await checkCases(client, group, rows, { prefix: '', isHttp1: false })
      })
    }

    test('creates a plant with an id beyond 2^53', async () => {
      const plantStore = createPlantStore({ authenticate })

      const created = await call(plantStore, post('ada', '{"id":9007199254740993,"name":"Férn 🌱"}'))

      const body = '{"name":"Férn 🌱"}'
      const headers = { ...JSON_FIELDS, 'content-length': String(Buffer.byteLength(body)) }
      assert.deepEqual(created, { status: 200, headers, body })
      assert.equal((await call(plantStore, del('ada', '9007199254740993'))).status, 204)
    })

    test('gets a list of 5,000 plants whole', async () => {
      const store = memoryStore()
      const plants = Array.from({ length: 5000 }, (_, i) => ({ name: `é ${i}` }))
      for (const [i, plant] of plants.entries()) void store.create('ada', { id: BigInt(i), ...plant })

      const list = await call(createPlantStore({ authenticate, store }), get('ada'))

      assert.deepEqual(list, { status: 200, headers: JSON_FIELDS, body: JSON.stringify(plants) })
    })
  })
}
