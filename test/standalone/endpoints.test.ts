import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { StoreUnavailableError, memoryStore } from '../../src/index.ts'
import { openapi } from '../../src/openapi/openapi.ts'
import { serveInProcess, WRITER_TOKEN } from '../support/standalone-server.ts'
import { RawConnection } from '../support/raw-connection.ts'

const ALLOW = 'GET, HEAD, OPTIONS'
const NOT_ALLOWED = {
  error: 40500,
  message: 'The resource does not support this method. The Allow header lists the supported methods.',
}

async function describe(response: Response): Promise<object> {
  const text = await response.text()
  const { status, headers } = response
  const allow = headers.get('allow')
  return {
    status,
    ...(allow !== null && { allow }),
    cacheControl: headers.get('cache-control'),
    body: text === '' ? '' : (JSON.parse(text) as unknown),
  }
}

suite('endpoints of the standalone server', () => {
  test('respond according to the method', async (t) => {
    const { url, admin } = await serveInProcess(t, { PLANT_STORE_ADMIN_PORT: '0' })
    const request = async (method: string, target: string) => describe(await fetch(target, { method }))
    for (const base of [url, admin]) {
      const live = { status: 200, cacheControl: 'no-store', body: { status: 'live' } }
      assert.deepEqual(await request('GET', `${base}/livez`), live)
      assert.deepEqual(await request('GET', `${base}/livez?a=b`), live)
      assert.deepEqual(await request('HEAD', `${base}/livez`), { ...live, body: '' })
      assert.deepEqual(await request('OPTIONS', `${base}/livez`), {
        status: 204,
        allow: ALLOW,
        cacheControl: null,
        body: '',
      })
      assert.deepEqual(await request('POST', `${base}/livez`), {
        status: 405,
        allow: ALLOW,
        cacheControl: 'no-store',
        body: NOT_ALLOWED,
      })
      assert.deepEqual(await request('GET', `${base}/readyz`), { ...live, body: { status: 'ready' } })
    }
  })

  test('exist on the admin port only if they do not belong to the service', async (t) => {
    const { url, admin } = await serveInProcess(t, { PLANT_STORE_ADMIN_PORT: '0' })
    for (const path of ['/plants', '/openapi.json', '/']) {
      const message = 'There is no resource at this path. The admin port has /livez, /readyz and /metrics.'
      assert.deepEqual(await (await fetch(admin + path)).json(), { error: 40400, message })
    }
    assert.equal((await fetch(`${url}/metrics`)).status, 404)
    assert.equal((await fetch(`${url}/livez/`)).status, 404)
  })

  const TARGETS: readonly (readonly [target: string, status: number, field?: string])[] = [
    ['http://a/livez', 200],
    ['HTTPS://a:1/livez?b', 200],
    ['http://b@a/livez', 404],
    ['*', 404],
    ['/livez', 400, 'Host: b'],
    ['/livez', 400, 'Content-Type: a\r\nContent-Type: a'],
    ['/livez', 501, 'Transfer-Encoding: gzip, chunked'],
    ['/livez', 431, 'a: b\r\n'.repeat(1000).trimEnd()],
  ]
  for (const [target, status, field] of TARGETS) {
    test(`respond with ${status} to GET ${target}${field === undefined ? '' : ` with ${field.slice(0, 20)}`}`, async (t) => {
      const { port } = await serveInProcess(t)
      const connection = await RawConnection.open(port)
      connection.send(`GET ${target} HTTP/1.1\r\nHost: a\r\n${field === undefined ? '' : `${field}\r\n`}\r\n`)
      const response = await connection.waitFor(/^HTTP\/1.1 (\d+)/)
      connection.socket.destroy()
      assert.match(String(response), new RegExp(String(status)))
    })
  }

  test('describe the service with a relative server URL', async (t) => {
    const { url } = await serveInProcess(t)
    const response = await fetch(`${url}/openapi.json`)
    assert.equal(response.headers.get('content-type'), 'application/json')
    assert.equal(response.headers.get('cache-control'), 'no-cache')
    assert.deepEqual(await response.json(), { ...openapi, servers: [{ url: '.' }] })
  })
})

suite('readiness', () => {
  test('follows the store within 2 s', async (t) => {
    let isAvailable = true
    let pings = 0
    const ping = (): void => {
      pings++
      if (!isAvailable) throw new StoreUnavailableError('down')
    }
    const { url } = await serveInProcess(t, {}, { ...memoryStore(), ping })
    const waitForStatus = async (status: number): Promise<void> => {
      while ((await fetch(`${url}/readyz`)).status !== status);
    }
    await waitForStatus(200)
    let ms = Infinity
    // Other load on the machine can make an attempt slower.
    for (let attempt = 1; attempt <= 5 && ms >= 2000; attempt++) {
      pings = 0
      const changedAt = performance.now()
      isAvailable = false
      await waitForStatus(503)
      const failedAt = performance.now()
      isAvailable = true
      await waitForStatus(200)
      ms = Math.max(failedAt - changedAt, performance.now() - failedAt)
      assert.ok(pings <= 2 + (performance.now() - changedAt) / 1000, `${pings} pings`)
    }
    assert.ok(ms < 2000, `it took ${ms} ms`)
  })

  test('is 503 if the ping does not settle', async (t) => {
    const { url } = await serveInProcess(t, {}, { ...memoryStore(), ping: () => new Promise(() => undefined) })
    const response = await fetch(`${url}/readyz`)
    assert.deepEqual(
      [response.status, response.headers.get('retry-after'), await response.json()],
      [
        503,
        '1',
        { error: 50300, message: 'The store is temporarily unavailable. The request had no effect; try again.' },
      ],
    )
  })
})

suite('request IDs', () => {
  const IDS: readonly (readonly [description: string, headers: string, isKept: boolean])[] = [
    ['of visible ASCII', 'X-Request-Id: a!~"', true],
    ['of 128 characters', `x-request-id: ${'a'.repeat(128)}`, true],
    ['of 129 characters', `X-Request-Id: ${'a'.repeat(129)}`, false],
    ['with a space', 'X-Request-Id: a b', false],
    ['that is repeated', 'X-Request-Id: a\r\nX-Request-Id: a', false],
    ['that is empty', 'X-Request-Id: ', false],
  ]
  for (const [description, headers, isKept] of IDS) {
    test(`an ID ${description} is ${isKept ? 'kept' : 'replaced'}`, async (t) => {
      const { port } = await serveInProcess(t)
      const connection = await RawConnection.open(port)
      connection.send(`GET /plants HTTP/1.1\r\nHost: a\r\n${headers}\r\n\r\n`)
      const [, id] = await connection.waitFor(/X-Request-Id: (.*)\r\n/)
      connection.socket.destroy()
      if (isKept) assert.equal(id, headers.slice('X-Request-Id: '.length))
      else assert.match(id!, /^[\da-f]{16}-\d+$/)
    })
  }

  test('are part of each response, also to a request with an invalid Host', async (t) => {
    const { url, port } = await serveInProcess(t)
    const response = await fetch(`${url}/plants`, { headers: { Authorization: `Bearer ${WRITER_TOKEN}` } })
    assert.match(response.headers.get('x-request-id')!, /^[\da-f]{16}-\d+$/)
    const connection = await RawConnection.open(port)
    connection.send('GET /plants HTTP/1.1\r\nHost: a/b\r\nX-Request-Id: a\r\n\r\n')
    await connection.waitFor(/^HTTP\/1.1 400 [^]*X-Request-Id: a\r\n/)
    connection.socket.destroy()
  })
})
