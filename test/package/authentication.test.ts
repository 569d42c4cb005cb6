import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { RequestListener } from 'node:http'
import { suite, test, type TestContext } from 'node:test'
import { exportJWK, generateKeyPair, SignJWT, UnsecuredJWT, type CryptoKey } from 'jose'
import { programsOf, readDocument } from '../support/package/documents.ts'
import { startExample } from '../support/package/examples.ts'
import { close, get, portOf, post, sendTo, serve, type Answer } from '../support/wire/service.ts'

function exampleWith(text: string): string {
  return programsOf(readDocument('docs/authentication.md')).find(({ code }) => code.includes(text))!.code
}

const CONTENT = { 'content-type': 'application/json', 'cache-control': 'no-store' }
const REFUSED = {
  status: 401,
  headers: { ...CONTENT, 'www-authenticate': 'Bearer realm="plant-store", error="invalid_token"' },
  body: '{"error":40101,"message":"The bearer token is malformed or not known here."}',
}
const OUT_OF_REACH = {
  status: 503,
  headers: { ...CONTENT, 'retry-after': '1' },
  body: '{"error":50300,"message":"The plants are out of reach at the moment; try again."}',
}
const LISTED = { status: 200, headers: CONTENT, body: '[]' }

/** What of an answer depends on the token. */
function essence({ status, headers, body }: Answer) {
  const rest = Object.entries(headers).filter(([name]) => name !== 'content-length')
  return { status, headers: Object.fromEntries(rest), body }
}

test('a token holds from when it is issued until it is revoked', async (t) => {
  const called = `process.on('message', (token) =>
    process.send(token === '' ? issueToken({ owner: 'grace', access: 'read' }) : revokeToken(token)))`
  const { port, child } = await startExample(t, exampleWith('issueToken') + called)
  async function call(argument: string) {
    child.send(argument)
    return ((await once(child, 'message')) as unknown[])[0]
  }

  const token = String(await call(''))
  assert.deepEqual(essence(await sendTo(port, get(token))), LISTED)
  assert.equal((await sendTo(port, post(token, '{"id":1,"name":"Fern"}'))).status, 403)

  assert.equal(await call(token), true)
  assert.deepEqual(essence(await sendTo(port, get(token))), REFUSED)
  assert.deepEqual(essence(await sendTo(port, get('a-long-random-token'))), LISTED)
})

suite('JSON Web Tokens', { timeout: 60_000 }, async () => {
  const { publicKey, privateKey } = await generateKeyPair('ES256')
  const jwk = { ...(await exportJWK(publicKey)), kid: 'key', alg: 'ES256' }

  const now = Math.floor(Date.now() / 1000)
  const good = { iss: 'https://issuer.example', aud: 'plants', sub: 'ada', scope: 'plants:write', exp: now + 3600 }

  function sign(claims: object = {}, key: CryptoKey | Uint8Array = privateKey, header = {}) {
    return new SignJWT({ ...good, ...claims }).setProtectedHeader({ alg: 'ES256', kid: 'key', ...header }).sign(key)
  }

  /** Starts the example with an issuer whose keys are served by a listener. */
  async function startIssued(t: TestContext, listener: RequestListener) {
    const issuer = await serve(t, listener)
    const url = `http://127.0.0.1:${portOf(issuer)}/jwks.json`
    const code = exampleWith("'jose'").replace('https://issuer.example/jwks.json', url)
    const { port } = await startExample(t, code.replace('console.error', '() => undefined'))
    return { port, issuer }
  }

  const serveKeys: RequestListener = (_, response) => response.end(JSON.stringify({ keys: [jwk] }))

  test('say whose plants they are, and who may only list', async (t) => {
    const { port } = await startIssued(t, serveKeys)
    const [plant, token] = ['{"id":1,"name":"Fern"}', await sign()]
    assert.equal((await sendTo(port, post(token, plant))).status, 200)
    assert.equal((await sendTo(port, get(token))).body, '[{"name":"Fern"}]')
    for (const scope of ['plants:read', undefined]) {
      const token = await sign({ sub: 'grace', scope })
      assert.deepEqual(essence(await sendTo(port, get(token))), LISTED)
      assert.equal((await sendTo(port, post(token, plant))).status, 403)
    }
  })

  test('are refused if they are wrong', async (t) => {
    const { port } = await startIssued(t, serveKeys)
    const other = await generateKeyPair('ES256')
    const [header, payload, signature] = (await sign()).split('.')
    const wrong = {
      expired: await sign({ exp: now - 60 }),
      'without expiry': await sign({ exp: undefined }),
      'without an owner': await sign({ sub: undefined }),
      'for another audience': await sign({ aud: 'animals' }),
      'of another issuer': await sign({ iss: 'https://other.example' }),
      'signed by another key': await sign({}, other.privateKey),
      'signed by an unknown key': await sign({}, other.privateKey, { kid: 'other' }),
      'signed with the public key': await sign({}, Buffer.from(JSON.stringify(jwk)), { alg: 'HS256' }),
      unsigned: new UnsecuredJWT({ sub: 'ada' }).setExpirationTime('1h').encode(),
      altered: [header, Buffer.from('{"sub":"grace"}').toString('base64url'), signature].join('.'),
      cut: [header, payload].join('.'),
      'no JSON': 'a.b.c',
    }
    for (const [name, token] of Object.entries(wrong)) {
      assert.deepEqual({ name, ...essence(await sendTo(port, get(token))) }, { name, ...REFUSED })
    }
  })

  const broken: Readonly<Record<string, RequestListener>> = {
    'refuses connections': (request) => request.destroy(),
    'answers 500': (_, response) => response.writeHead(500).end(),
    'sends no JSON': (_, response) => response.end('<html>'),
    'sends no keys': (_, response) => response.end('{}'),
    'never answers': () => undefined,
  }
  for (const [name, listener] of Object.entries(broken)) {
    test(`are not refused while their issuer ${name}`, async (t) => {
      let answer = listener
      const { port } = await startIssued(t, (request, response) => answer(request, response))
      const token = await sign()
      assert.deepEqual(essence(await sendTo(port, get(token))), OUT_OF_REACH)

      answer = serveKeys
      assert.deepEqual(essence(await sendTo(port, get(token))), LISTED)
    })
  }

  test('need their issuer once, also if others name keys that it does not have', async (t) => {
    let asked = 0
    const { port, issuer } = await startIssued(t, (request, response) => {
      asked++
      serveKeys(request, response)
    })
    const [good, unknown] = [await sign(), await sign({}, privateKey, { kid: 'other' })]
    for (let i = 0; i < 10; i++) {
      assert.deepEqual(essence(await sendTo(port, get(good))), LISTED)
      assert.deepEqual(essence(await sendTo(port, get(unknown))), REFUSED)
    }
    assert.equal(asked, 1)

    await close(issuer)
    assert.deepEqual(essence(await sendTo(port, get(good))), LISTED)
  })
})
