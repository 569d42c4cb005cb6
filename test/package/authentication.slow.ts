import assert from 'node:assert/strict'
import { generateKeyPairSync, type KeyObject } from 'node:crypto'
import type { RequestListener } from 'node:http'
import { suite, test, type TestContext } from 'node:test'
import { readDocument } from '../support/documents.ts'
import { findPrograms } from '../support/programs.ts'
import { startExample } from '../support/examples.ts'
import { importPeer, skipWithoutPeers } from '../support/extra-packages.ts'
import { get, getPort, post, sendToPort, serve } from '../support/service.ts'

const peers = { skip: skipWithoutPeers }
const PLANT = '{"id":1,"name":"Fern"}'

function findExample(text: string): string {
  return findPrograms(readDocument('docs/authentication.md')).find(({ code }) => code.includes(text))!.code
}

/** Sends a GET request and returns the status and the error code, or the list. */
async function list(port: number, token: string) {
  const { status, body } = await sendToPort(port, get(token))
  const value = JSON.parse(body) as { error?: number }
  return [status, value.error ?? body]
}

test('the Express example takes owner and access from the id and role of request.user', peers, async (t) => {
  const code = findExample("role: 'editor' }")
  const { port } = await startExample(t, code)
  const path = '/api/plants'
  assert.equal((await sendToPort(port, { ...post('a-long-random-token', PLANT), path })).status, 200)
  assert.equal((await sendToPort(port, get('a-long-random-token', path))).body, '[{"name":"Fern"}]')
  assert.equal((await sendToPort(port, get('another-token', path))).status, 401)

  const viewer = await startExample(t, code.replace("role: 'editor' }", "role: 'viewer' }"))
  assert.equal((await sendToPort(viewer.port, { ...post('a-long-random-token', PLANT), path })).status, 403)
})

test('the session example requires both the session cookie and a bearer token', peers, async (t) => {
  const { port } = await startExample(t, findExample("'express-session'"))
  const login = await sendToPort(port, { method: 'POST', path: '/login', fields: [] })
  const cookie = ['Cookie', login.headers['set-cookie']!.split(';')[0]!]
  const token = ['Authorization', 'Bearer session']
  const send = (fields: readonly string[]) => sendToPort(port, { method: 'GET', path: '/api/plants', fields })

  assert.deepEqual((await send([...cookie, ...token])).body, '[]')
  assert.match((await send(cookie)).body, /^{"error":40100,/)
  assert.match((await send(token)).body, /^{"error":40101,/)
})

interface Jwt {
  setProtectedHeader(header: object): { sign(key: KeyObject | Uint8Array): Promise<string> }
}

suite('the example with JSON Web Tokens', { ...peers, timeout: 60_000 }, async () => {
  const { SignJWT } = await importPeer<{ SignJWT: new (claims: object) => Jwt }>('jose')
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const jwk = { ...publicKey.export({ format: 'jwk' }), kid: 'key', alg: 'ES256' }
  const now = Math.floor(Date.now() / 1000)
  const valid = { iss: 'https://issuer.example', aud: 'plants', sub: 'ada', scope: 'plants:write', exp: now + 3600 }

  function sign(claims: object = {}, key: KeyObject | Uint8Array = privateKey, alg = 'ES256') {
    return new SignJWT({ ...valid, ...claims }).setProtectedHeader({ alg, kid: 'key' }).sign(key)
  }

  /** Starts the example with an issuer whose key set is served by the given listener, and returns its port. */
  async function startIssued(t: TestContext, listener: RequestListener) {
    const url = `http://127.0.0.1:${getPort(await serve(t, listener))}/jwks.json`
    const code = findExample("'jose'").replace('https://issuer.example/jwks.json', url)
    return (await startExample(t, code.replace('console.error', '() => undefined'))).port
  }

  const serveKeys: RequestListener = (_, response) => response.end(JSON.stringify({ keys: [jwk] }))

  test('takes the owner from the sub claim and write access from the scope claim', async (t) => {
    const port = await startIssued(t, serveKeys)
    const token = await sign()
    assert.equal((await sendToPort(port, post(token, PLANT))).status, 200)
    assert.deepEqual(await list(port, token), [200, '[{"name":"Fern"}]'])
    for (const scope of ['plants:read', undefined]) {
      const reader = await sign({ sub: 'grace', scope })
      assert.deepEqual(await list(port, reader), [200, '[]'])
      assert.equal((await sendToPort(port, post(reader, PLANT))).status, 403)
    }
  })

  test('rejects invalid tokens with 40101', async (t) => {
    const port = await startIssued(t, serveKeys)
    const other = generateKeyPairSync('ec', { namedCurve: 'P-256' })
    const invalidTokens = {
      expired: await sign({ exp: now - 60 }),
      'without expiry': await sign({ exp: undefined }),
      'without an owner': await sign({ sub: undefined }),
      'for another audience': await sign({ aud: 'animals' }),
      'from another issuer': await sign({ iss: 'https://other.example' }),
      'signed by another key': await sign({}, other.privateKey),
      'signed with the public key': await sign({}, Buffer.from(JSON.stringify(jwk)), 'HS256'),
      'not a JSON Web Token': 'a.b.c',
    }
    for (const [name, token] of Object.entries(invalidTokens)) {
      assert.deepEqual([name, ...(await list(port, token))], [name, 401, 40101])
    }
  })

  for (const [name, listener] of Object.entries<RequestListener>({
    'responds with 500': (_, response) => response.writeHead(500).end(),
    'never responds': () => undefined,
  })) {
    test(`responds with 50300 only while the issuer ${name}`, async (t) => {
      let serveIssuer = listener
      const port = await startIssued(t, (request, response) => serveIssuer(request, response))
      const token = await sign()
      assert.deepEqual(await list(port, token), [503, 50300])
      serveIssuer = serveKeys
      assert.deepEqual(await list(port, token), [200, '[]'])
    })
  }
})
