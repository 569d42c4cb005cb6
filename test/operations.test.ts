import assert from 'node:assert/strict'
import { METHODS } from 'node:http'
import { suite, test } from 'node:test'
import { OPERATIONS, RESOURCE_PATHS } from '../src/operations.ts'
import { bearer, send, servePlants } from './support/service.ts'

for (const path of RESOURCE_PATHS) {
  const allowed = [...Object.keys(OPERATIONS[path]), 'OPTIONS']
  const target = path.replace('{id}', '1')

  suite(path, () => {
    test('names in Allow the methods that it has', async (t) => {
      const { status, headers } = await send(await servePlants(t), { method: 'OPTIONS', path: target, fields: [] })
      assert.deepEqual({ status, headers }, { status: 204, headers: { allow: allowed.join(', ') } })
    })

    test('refuses every other method of Node with 405 and the same Allow', async (t) => {
      const server = await servePlants(t)
      // After CONNECT a client expects no response but a tunnel.
      for (const method of METHODS.filter((method) => method !== 'CONNECT' && !allowed.includes(method))) {
        const { status, headers } = await send(server, { method, path: target, fields: bearer('ada') })
        assert.deepEqual([method, status, headers['allow']], [method, 405, allowed.join(', ')])
      }
    })
  })
}
