import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { inspect } from 'node:util'
import { createPlantClient } from '../../src/client/plant-client.ts'
import { respond, startFaultyProxy } from '../support/wire/faulty-proxy.ts'

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

  test("can't have a port that fetch blocks, and can have any other", async () => {
    const blocked = Array.from({ length: 2 ** 16 }, (_, port) => port).filter((port) => {
      try {
        createPlantClient({ ...VALID, url: `http://127.0.0.1:${port}` })
        return false
      } catch {
        return true
      }
    })
    assertRejected({ url: 'https://host:6000' }, "url can't have port 6000, which fetch blocks")
    assert.equal(blocked.length, 83)
    for (const port of blocked.slice(1)) {
      await assert.rejects(
        fetch(`http://127.0.0.1:${port}`),
        ({ cause }: Error) => (cause as Error).message === 'bad port',
      )
    }
  })

  test('can have a blocked port if a custom fetch allows it', async () => {
    const custom = async (): Promise<Response> => Promise.resolve(Response.json({ name: 'Fern' }))
    await createPlantClient({ ...VALID, url: 'http://host:6000', fetch: custom }).create({ id: 1, name: 'Fern' })
  })
})

suite('the headers of a client', () => {
  for (const name of ['Content-Length', 'Expect', 'Keep-Alive', 'Transfer-Encoding', 'Upgrade']) {
    test(`can't contain ${name}`, () => {
      assertRejected({ headers: { [name]: SECRET } }, `headers can't contain ${name}: fetch sets it, or forbids it`)
    })
  }

  for (const name of ['a b', '', 'é', `x-key: ${SECRET}`]) {
    test(`can't have the name ${JSON.stringify(name)}`, () => {
      assertRejected({ headers: { [name]: '' } }, 'headers contains a name that is not valid in HTTP')
    })
  }

  for (const value of [`${SECRET}\nx`, `${SECRET}\0`, `${SECRET} \u{1f331}`, undefined, null, 1]) {
    test(`can't have the value ${JSON.stringify(value)}`, () => {
      const message = 'headers: the value of x-key must be a string of Latin-1 characters on one line'
      assertRejected({ headers: { 'x-key': value } }, message)
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
    let count = 0
    const client = createPlantClient({
      ...VALID,
      headers: { expect2: SECRET },
      fetch: (url, init) => (count++, fetch(url, { ...init, headers: { 'keep-alive': SECRET } })),
    })
    await assert.rejects(client.delete(1), (error: Error) => {
      assert.equal(error.message, "fetch can't send this request: invalid keep-alive header")
      return error.name === 'TypeError' && !inspect(error).includes(SECRET)
    })
    assert.equal(count, 1)
  })
})

suite('the options of a client', () => {
  for (const [name, values] of [
    ['retries', [NaN, -1, 1.5, '3', null]],
    ['timeoutMs', [NaN, 0, -1, '20', null]],
    ['fetch', ['fetch', {}]],
  ] as const) {
    for (const value of values) {
      test(`can't have ${name}: ${inspect(value)}`, () =>
        assertRejected({ [name]: value }, new RegExp(`^${name} must `)))
    }
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

suite('a token', () => {
  for (const token of ['', 'two words', `${SECRET}\n`, `${SECRET}é`, undefined, null]) {
    test(`can't be ${JSON.stringify(token)}`, async () => {
      const message = 'token must be a bearer token (RFC 6750)'
      assertRejected({ token }, message)
      const client = createPlantClient({ ...VALID, token: () => token!, fetch: () => assert.fail('a request') })
      await assert.rejects(client.create({ id: 1, name: 'Fern' }), { name: 'TypeError', message })
    })
  }
})
