import assert from 'node:assert/strict'
import type { RequestListener } from 'node:http'
import { suite, test, type TestContext } from 'node:test'
import { exportJWK, generateKeyPair, SignJWT, UnsecuredJWT, type CryptoKey } from 'jose'
import { waitForChild } from '../support/child-process.ts'
import { findPrograms, readDocument } from '../support/package/documents.ts'
import { startExample } from '../support/package/examples.ts'
import { close, get, getPort, post, sendToPort, serve, type TestResponse } from '../support/wire/service.ts'

function findExample(text: string): string {
  return findPrograms(readDocument('docs/authentication.md')).find(({ code }) => code.includes(text))!.code
}

const CONTENT = { 'content-type': 'application/json', 'cache-control': 'no-store' }
const UNAUTHORIZED = {
  status: 401,
  headers: { ...CONTENT, 'www-authenticate': 'Bearer realm="plant-store", error="invalid_token"' },
  body: '{"error":40101,"message":"The bearer token is invalid."}',
}
const UNAVAILABLE = {
  status: 503,
  headers: { ...CONTENT, 'retry-after': '1' },
  body: '{"error":50300,"message":"The store is temporarily unavailable. The request had no effect; try again."}',
}
const EMPTY_LIST = { status: 200, headers: CONTENT, body: '[]' }

/** Returns a response without its Content-Length, which the body determines. */
function omitContentLength({ status, headers, body }: TestResponse) {
  const rest = Object.entries(headers).filter(([name]) => name !== 'content-length')
  return { status, headers: Object.fromEntries(rest), body }
}

test('the example with issueToken accepts a token until it is revoked', async (t) => {
  const called = `process.on('message', (token) =>
    process.send(token === '' ? issueToken({ owner: 'grace', access: 'read' }) : revokeToken(token)))`
  const { port, child } = await startExample(t, findExample('issueToken') + called)
  async function call(argument: string) {
    child.send(argument)
    return waitForChild<unknown>(child, 'message')
  }

  const token = String(await call(''))
  assert.deepEqual(omitContentLength(await sendToPort(port, get(token))), EMPTY_LIST)
  assert.equal((await sendToPort(port, post(token, '{"id":1,"name":"Fern"}'))).status, 403)

  assert.equal(await call(token), true)
  assert.deepEqual(omitContentLength(await sendToPort(port, get(token))), UNAUTHORIZED)
  assert.deepEqual(omitContentLength(await sendToPort(port, get('a-long-random-token'))), EMPTY_LIST)
})

test('the Express example takes owner and access from the id and role of request.user', async (t) => {
  const { port } = await startExample(t, findExample("role: 'editor' }"))
  const path = '/api/plants'
  assert.equal((await sendToPort(port, { ...post('a-long-random-token', '{"id":1,"name":"Fern"}'), path })).status, 200)
  assert.equal((await sendToPort(port, get('a-long-random-token', path))).body, '[{"name":"Fern"}]')
  assert.equal((await sendToPort(port, get('another-token', path))).status, 401)

  const viewer = await startExample(t, findExample("role: 'editor' }").replace("role: 'editor' }", "role: 'viewer' }"))
  const body = '{"id":1,"name":"Fern"}'
  assert.equal((await sendToPort(viewer.port, { ...post('a-long-random-token', body), path })).status, 403)
})

test('the session example requires both the session cookie and a bearer token', async (t) => {
  const { port } = await startExample(t, findExample("'express-session'"))
  const login = await sendToPort(port, { method: 'POST', path: '/login', fields: [] })
  assert.equal(login.status, 204)
  const cookie = ['Cookie', login.headers['set-cookie']!.split(';')[0]!]
  const token = ['Authorization', 'Bearer session']
  const send = (fields: readonly string[]) => sendToPort(port, { method: 'GET', path: '/api/plants', fields })

  const plant = { ...post('session', '{"id":1,"name":"Fern"}'), path: '/api/plants' }
  assert.equal((await sendToPort(port, { ...plant, fields: [...plant.fields, ...cookie] })).status, 200)
  assert.equal((await send([...cookie, ...token])).body, '[{"name":"Fern"}]')
  assert.match((await send(cookie)).body, /^{"error":40100,/)
  assert.match((await send(token)).body, /^{"error":40101,/)
})

suite('the example with JSON Web Tokens', { timeout: 60_000 }, async () => {
  const { publicKey, privateKey } = await generateKeyPair('ES256')
  const jwk = { ...(await exportJWK(publicKey)), kid: 'key', alg: 'ES256' }

  const now = Math.floor(Date.now() / 1000)
  const good = { iss: 'https://issuer.example', aud: 'plants', sub: 'ada', scope: 'plants:write', exp: now + 3600 }

  function sign(claims: object = {}, key: CryptoKey | Uint8Array = privateKey, header = {}) {
    return new SignJWT({ ...good, ...claims }).setProtectedHeader({ alg: 'ES256', kid: 'key', ...header }).sign(key)
  }

  /** Starts the example with an issuer whose key set is served by the given listener. */
  async function startIssued(t: TestContext, listener: RequestListener) {
    const issuer = await serve(t, listener)
    const url = `http://127.0.0.1:${getPort(issuer)}/jwks.json`
    const code = findExample("'jose'").replace('https://issuer.example/jwks.json', url)
    const { port } = await startExample(t, code.replace('console.error', '() => undefined'))
    return { port, issuer }
  }

  const serveKeys: RequestListener = (_, response) => response.end(JSON.stringify({ keys: [jwk] }))

  test('takes the owner from the sub claim and write access from the scope claim', async (t) => {
    const { port } = await startIssued(t, serveKeys)
    const [plant, token] = ['{"id":1,"name":"Fern"}', await sign()]
    assert.equal((await sendToPort(port, post(token, plant))).status, 200)
    assert.equal((await sendToPort(port, get(token))).body, '[{"name":"Fern"}]')
    for (const scope of ['plants:read', undefined]) {
      const token = await sign({ sub: 'grace', scope })
      assert.deepEqual(omitContentLength(await sendToPort(port, get(token))), EMPTY_LIST)
      assert.equal((await sendToPort(port, post(token, plant))).status, 403)
    }
  })

  test('rejects invalid tokens with 40101', async (t) => {
    const { port } = await startIssued(t, serveKeys)
    const other = await generateKeyPair('ES256')
    const [header, payload, signature] = (await sign()).split('.')
    const invalidTokens = {
      expired: await sign({ exp: now - 60 }),
      'without expiry': await sign({ exp: undefined }),
      'without an owner': await sign({ sub: undefined }),
      'for another audience': await sign({ aud: 'animals' }),
      'from another issuer': await sign({ iss: 'https://other.example' }),
      'signed by another key': await sign({}, other.privateKey),
      'signed by an unknown key': await sign({}, other.privateKey, { kid: 'other' }),
      'signed with the public key': await sign({}, Buffer.from(JSON.stringify(jwk)), { alg: 'HS256' }),
      unsigned: new UnsecuredJWT({ sub: 'ada' }).setExpirationTime('1h').encode(),
      tampered: [header, Buffer.from('{"sub":"grace"}').toString('base64url'), signature].join('.'),
      'without a signature': [header, payload].join('.'),
      'not JSON': 'a.b.c',
    }
    for (const [name, token] of Object.entries(invalidTokens)) {
      assert.deepEqual({ name, ...omitContentLength(await sendToPort(port, get(token))) }, { name, ...UNAUTHORIZED })
    }
  })

  const brokenIssuers: Readonly<Record<string, RequestListener>> = {
    'resets connections': (request) => request.destroy(),
    'responds with 500': (_, response) => response.writeHead(500).end(),
    'sends HTML': (_, response) => response.end('<html>'),
    'sends JSON without keys': (_, response) => response.end('{}'),
    'never responds': () => undefined,
  }
  for (const [name, listener] of Object.entries(brokenIssuers)) {
    test(`responds with 50300 only while the issuer ${name}`, async (t) => {
      let serveIssuer = listener
      const { port } = await startIssued(t, (request, response) => serveIssuer(request, response))
      const token = await sign()
      assert.deepEqual(omitContentLength(await sendToPort(port, get(token))), UNAVAILABLE)

      serveIssuer = serveKeys
      assert.deepEqual(omitContentLength(await sendToPort(port, get(token))), EMPTY_LIST)
    })
  }

  test('fetches the key set only once, even if tokens have unknown key ids', async (t) => {
    let fetches = 0
    const { port, issuer } = await startIssued(t, (request, response) => {
      fetches++
      serveKeys(request, response)
    })
    const [good, unknown] = [await sign(), await sign({}, privateKey, { kid: 'other' })]
    for (let i = 0; i < 10; i++) {
      assert.deepEqual(omitContentLength(await sendToPort(port, get(good))), EMPTY_LIST)
      assert.deepEqual(omitContentLength(await sendToPort(port, get(unknown))), UNAUTHORIZED)
    }
    assert.equal(fetches, 1)

    await close(issuer)
    assert.deepEqual(omitContentLength(await sendToPort(port, get(good))), EMPTY_LIST)
  })
})
