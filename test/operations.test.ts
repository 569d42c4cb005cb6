import assert from 'node:assert/strict'
import { METHODS } from 'node:http'
import { suite, test } from 'node:test'
import { OPERATIONS, RESOURCE_PATHS } from '../src/operations.ts'
import { serveIn } from './support/wire/client.ts'
import { bearer, createService, send, servePlants } from './support/wire/service.ts'

for (const path of RESOURCE_PATHS) {
  const allowed = [...Object.keys(OPERATIONS[path]), 'OPTIONS']
  const target = path.replace('{id}', '1')

  suite(path, () => {
    test('refuses every other method of Node with 405 and the same Allow', async (t) => {
      const server = await servePlants(t)
      // After CONNECT a client expects no response but a tunnel.
      for (const method of METHODS.filter((method) => method !== 'CONNECT' && !allowed.includes(method))) {
        const { status, headers } = await send(server, { method, path: target, fields: bearer('ada') })
        assert.deepEqual([method, status, headers['allow']], [method, 405, allowed.join(', ')])
      }
    })

    // HTTP/1 of Node knows its methods, HTTP/2 takes any name.
    for (const method of ['constructor', 'toString', '__proto__']) {
      test(`refuses ${method} with 405 and the same Allow`, async (t) => {
        const client = await serveIn(t, 'h2c', createService())
        const { status, headers } = await client.send({ method, path: target, fields: bearer('ada') })
        assert.deepEqual([status, headers['allow']], [405, allowed.join(', ')])
      })
    }
  })
}
