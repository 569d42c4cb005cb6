import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { memoryStore } from '../../src/index.ts'
import { skipWithoutCommand } from '../support/skip-reasons.ts'
import { findFreePort } from '../support/find-free-port.ts'
import { startNginx } from '../support/proxies.ts'
import { createService, get, getPort, sendToPort, serve } from '../support/service.ts'

suite('nginx with proxy_cache', { skip: skipWithoutCommand('nginx') }, () => {
  for (const [what, path, first, second] of [
    ['a list', '/plants', [200, '[{"name":"of ada"}]'], [200, '[{"name":"of bob"}]']],
    ['an error response', '/plants?limit=x', [400, undefined], [401, undefined]],
  ] as const) {
    test(`doesn't cache ${what}`, async (t) => {
      const store = memoryStore()
      for (const owner of ['ada', 'bob']) void store.create(owner, { id: 1n, name: `of ${owner}` })
      const authenticate = (token: string) => (token === 'eve' ? null : token)
      const program = getPort(await serve(t, createService({ store, authenticate })))
      const port = await findFreePort()
      const cache = 'proxy_cache_path cache keys_zone=plants:1m;'
      const location = `proxy_pass http://127.0.0.1:${program}; proxy_cache plants; proxy_cache_valid any 1m;`
      await startNginx(t, port, `${cache} server { listen 127.0.0.1:${port}; location / { ${location} } }`)

      const request = async (token: string) => {
        const { status, body } = await sendToPort(port, get(token, path))
        return [status, status === 200 ? body : undefined]
      }
      assert.deepEqual(await request('ada'), first)
      assert.deepEqual(await request(second[0] === 401 ? 'eve' : 'bob'), second)
    })
  }
})
