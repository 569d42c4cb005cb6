import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { inspect } from 'node:util'
import { createPlantClient } from '../../src/client/plant-client.ts'
import { respond, startFaultyProxy } from '../support/faulty-proxy.ts'

const VALID = { url: 'http://host', token: 'ada' }
const SECRET = 's3cret'

/** Checks that the options are rejected at construction, with a message that doesn't contain the secret. */
function assertRejected(options: object, message: string | RegExp): void {
  assert.throws(
    () => createPlantClient({ ...VALID, ...options }),
    (error: Error) => {
      assert.equal(error.name, 'TypeError')
      if (typeof message === 'string') assert.equal(error.message, message)
      else assert.match(error.message, message)
      assert.ok(!inspect(error, { depth: Infinity, showHidden: true }).includes(SECRET))
      return true
    },
  )
}

suite('the URL of a client', () => {
  for (const url of [
    ...['localhost:3000', '127.0.0.1:3000', 'plants.example', '//host/api', '/api', '', 'http://', 'http://host:99999'],
    ...['unix:/run/plants.sock', 'ws://host', 'file:///plants', 'host:443/api', 'blob:http://host/1', undefined, null],
    ...[`user:${SECRET}@host`, `http://user:${SECRET}#1@host`],
  ]) {
    test(`is rejected if it's ${url}`, () => {
      assertRejected({ url }, 'url must be an absolute URL that begins with http:// or https://')
    })
  }

  for (const url of [`https://user:${SECRET}@host`, new URL(`http://:${SECRET}@host`), `http://${SECRET}@host`]) {
    test(`is rejected if it contains credentials (${String(url)})`, () => {
      assertRejected({ url }, "url can't contain a user name or a password: fetch rejects them")
    })
  }

  test("can't have a port that fetch blocks", async () => {
    for (const port of [0, 1, 22, 6000, 10080]) {
      assertRejected({ url: `https://host:${port}` }, `url can't have port ${port}, which fetch blocks`)
      const error = (await fetch(`http://127.0.0.1:${port}`).catch((reason: unknown) => reason)) as Error
      if (port > 0) assert.equal((error.cause as Error).message, 'bad port')
    }
  })
})

suite('the headers of a client', () => {
  for (const name of ['Content-Length', 'Expect', 'Keep-Alive', 'Transfer-Encoding', 'Upgrade']) {
    test(`can't contain ${name}`, () => {
      assertRejected({ headers: { [name]: SECRET } }, `headers can't contain ${name}: fetch sets it, or forbids it`)
    })
  }

  for (const [name, value] of [
    ...(['a b', '', 'é', `x-key: ${SECRET}`] as const).map((name) => [name, '']),
    ...[`${SECRET}\nx`, `${SECRET}\0`, `${SECRET} \u{1f331}`, undefined, null, 1].map((value) => ['x-key', value]),
  ]) {
    test(`can't contain ${JSON.stringify([name, value])}`, () => {
      const message = 'headers must have names that are valid in HTTP, and strings of Latin-1 characters'
      assertRejected({ headers: { [String(name)]: value } }, message)
    })
  }

  for (const headers of [new Headers({ a: SECRET }), [['a', SECRET]], 'a: b', null]) {
    test(`must be an object of strings, not ${inspect(headers)}`, () => {
      assertRejected({ headers }, 'headers must be an object of strings')
    })
  }

  test('are sent with every request, except for the token and the type of the body', async (t) => {
    const seen: unknown[] = []
    const server = await startFaultyProxy(t, [
      ({ headers }, response) => {
        seen.push(headers['x-tenant'], headers.authorization, headers['content-type'])
        response.end('{"name":"Fern"}')
      },
    ])
    const headers = { 'X-Tenant': 'é', Authorization: 'Basic x', 'Content-Type': 'text/plain' }
    await server.connect({ headers }).create({ id: 1, name: 'Fern' })
    assert.deepEqual(seen, ['é', 'Bearer ada', 'application/json'])
  })

  test('reject the call at once if fetch refuses them', async () => {
    const client = createPlantClient({
      ...VALID,
      retries: 0,
      fetch: (url, init) => fetch(url, { ...init, headers: { 'keep-alive': SECRET } }),
    })
    await assert.rejects(client.delete(1), (error: Error) => {
      assert.equal(error.name, 'TypeError')
      return !inspect(error).includes(SECRET)
    })
  })
})

suite('the options of a client', () => {
  for (const [name, values] of [
    ['retries', [NaN, -1, 1.5, '3', null]],
    ['timeoutMs', [NaN, 0, -1, '20', null]],
    ['fetch', ['fetch', {}]],
  ] as const) {
    test(`must have a valid value of ${name}`, () => {
      for (const value of values) assertRejected({ [name]: value }, new RegExp(`^${name} must `))
    })
  }

  test("can't have an unknown name", () => assertRejected({ retry: 3 }, 'unknown option "retry"'))

  test('can be undefined or infinite', async (t) => {
    const proxy = await startFaultyProxy(t, [undefined, respond(503)])
    await proxy
      .connect({ fetch: undefined, timeoutMs: undefined, retries: undefined, headers: undefined })
      .create({ id: 1, name: 'Fern' })
    await proxy.connect({ timeoutMs: Infinity, retries: Infinity }).delete(1)
  })
})

suite('the options of a call', () => {
  const client = createPlantClient({ ...VALID, fetch: () => assert.fail('a request') })
  for (const options of [
    ...[{ limit: null }, { limit: NaN }, { limit: -1 }, { limit: 1.5 }, { limit: '5' }, { pageSize: 5 }],
    ...[{ signal: {} }, { signal: new AbortController() }],
  ]) {
    test(`can't be ${inspect(options, { depth: 0 })}`, async () => {
      await assert.rejects(client.listPage(options as object), { name: 'TypeError' })
      await assert.rejects(client.list(options as object).next(), { name: 'TypeError' })
    })
  }
})

test('a token must be a bearer token', async () => {
  const message = 'token must be a bearer token (RFC 6750)'
  for (const token of ['', 'two words', `${SECRET}\n`, `${SECRET}é`, undefined, null]) {
    assertRejected({ token }, message)
    const client = createPlantClient({ ...VALID, token: () => token!, fetch: () => assert.fail('a request') })
    await assert.rejects(client.create({ id: 1, name: 'Fern' }), { name: 'TypeError', message })
  }
})
