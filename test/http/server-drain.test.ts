import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { RequestListener, Server, ServerResponse } from 'node:http'
import { suite, test, type TestContext } from 'node:test'
import { createServer, type PlantServer, type ServerOptions } from '../../src/http-server/create-server.ts'
import { measureHeapUsed } from '../support/memory-usage.ts'
import { waitUntil } from '../support/wait-until.ts'
import { connectPair, RawConnection } from '../support/raw-connection.ts'
import { createService, listen, serve as serveUntilEnd } from '../support/service.ts'

const FIELDS = 'Host: plants\r\nAuthorization: Bearer ada\r\n'
const LIST = `GET /plants HTTP/1.1\r\n${FIELDS}\r\n`
const PLANT = '{"id":1,"name":"Fern"}'
const POST = `POST /plants HTTP/1.1\r\n${FIELDS}Content-Type: application/json\r\nContent-Length: ${PLANT.length}\r\n\r\n`

/** Serves a listener. By default, all timeouts are a minute, so that only the drain closes connections. */
async function serve(t: TestContext, listener: RequestListener, options: ServerOptions = {}): Promise<PlantServer> {
  const longTimeouts = { headersTimeoutMs: 60_000, requestTimeoutMs: 60_000, keepAliveTimeoutMs: 60_000 }
  const http = createServer(listener, { ...longTimeouts, drainTimeoutMs: 60_000, ...options })
  await serveUntilEnd(t, http.server)
  return http
}

/** Serves a listener that never responds by itself. Returns the responses that the test has to send. */
async function serveByHand(t: TestContext, options?: ServerOptions) {
  const responses: ServerResponse[] = []
  return { responses, http: await serve(t, (_, response) => void responses.push(response), options) }
}

/** Reads all responses until the connection closes. Returns the status and the Connection field of each. */
async function readAll(client: RawConnection): Promise<(readonly [number, string | undefined])[]> {
  return (await client.readResponses()).map(({ status, headers }) => [status, headers.get('connection')])
}

suite('a drain answers with Connection: close', { timeout: 60_000 }, () => {
  test('a request in progress', async (t) => {
    const { http, responses } = await serveByHand(t)
    const client = await RawConnection.open(http.server)
    const received = readAll(client.send(LIST))
    await waitUntil(() => responses.length === 1)
    const drained = http.drain()
    responses[0]!.end()
    assert.deepEqual(await received, [[200, 'close']])
    assert.equal(await drained, 0)
  })

  test('a request whose body is still arriving', async (t) => {
    const http = await serve(t, createService())
    const client = await RawConnection.open(http.server)
    const arrived = once(http.server, 'request')
    const received = readAll(client.send(POST))
    await arrived
    const drained = http.drain()
    client.send(PLANT)
    assert.deepEqual(await received, [[200, 'close']])
    assert.equal(await drained, 0)
  })

  test('a request that arrives on an idle connection', async (t) => {
    const http = await serve(t, createService())
    const client = await RawConnection.open(http.server)
    assert.deepEqual(await client.send(LIST).readStatuses(1), [200])
    const drained = http.drain()
    await waitUntil(() => !http.server.listening)
    assert.deepEqual(await readAll(client.send(LIST)), [[200, 'close']])
    assert.equal(await drained, 0)
  })

  test('a request without a valid Host', async (t) => {
    const http = await serve(t, createService())
    const { client } = await connectPair(http.server)
    void http.drain()
    assert.deepEqual(await readAll(client.send('GET / HTTP/1.1\r\n\r\n')), [[400, 'close']])
  })

  test('only the last of the requests that were pipelined before the drain', async (t) => {
    const { http, responses } = await serveByHand(t)
    const client = await RawConnection.open(http.server)
    const received = readAll(client.send(LIST.repeat(3)))
    await waitUntil(() => responses.length === 3)
    const drained = http.drain()
    for (const response of responses) response.end()
    const [first, second, last] = await received
    assert.deepEqual(
      [first, second, last],
      [
        [200, 'keep-alive'],
        [200, 'keep-alive'],
        [200, 'close'],
      ],
    )
    assert.equal(await drained, 0)
  })

  test('only the last of the requests that arrive in one packet', async (t) => {
    const http = await serve(t, createService())
    const { client } = await connectPair(http.server)
    const drained = http.drain()
    const received = await readAll(client.send(LIST.repeat(3)))
    assert.deepEqual(received, [
      [200, undefined],
      [200, undefined],
      [200, 'close'],
    ])
    assert.equal(await drained, 0)
  })

  for (const [when, drainFirst] of [
    ['before the drain', false],
    ['during the drain', true],
  ] as const) {
    test(`a request behind one in progress that arrived ${when}`, async (t) => {
      const { http, responses } = await serveByHand(t)
      const { client } = await connectPair(http.server)
      const drained = drainFirst ? http.drain() : undefined
      const received = readAll(client.send(LIST))
      await waitUntil(() => responses.length === 1)
      void http.drain()
      client.send(LIST)
      await waitUntil(() => responses.length === 2)
      for (const response of responses) response.end()
      assert.deepEqual(await received, [
        [200, undefined],
        [200, 'close'],
      ])
      assert.equal(await (drained ?? http.drain()), 0)
    })
  }

  test('nothing behind a request that asked to close the connection', async (t) => {
    const { http, responses } = await serveByHand(t)
    const { client } = await connectPair(http.server)
    void http.drain()
    const received = readAll(client.send(LIST.replace('Host', 'Connection: close\r\nHost') + LIST))
    await waitUntil(() => responses.length > 0)
    for (const response of responses) response.end()
    assert.deepEqual(await received, [[200, 'close']])
  })
})

suite('a drain', { timeout: 60_000 }, () => {
  test('refuses new connections', async (t) => {
    const { http, responses } = await serveByHand(t)
    const client = await RawConnection.open(http.server)
    client.send(LIST)
    const address = http.server.address()
    assert.ok(typeof address === 'object' && address !== null)
    await waitUntil(() => responses.length === 1)
    const drained = http.drain()
    await waitUntil(() => !http.server.listening)
    await assert.rejects(RawConnection.open(address.port), { code: 'ECONNREFUSED' })
    responses[0]!.end()
    await drained
  })

  test('closes idle connections after the keep-alive timeout, even if they have never been used', async (t) => {
    const http = await serve(t, createService(), { keepAliveTimeoutMs: 500 })
    const [used, unused] = [await RawConnection.open(http.server), await RawConnection.open(http.server)]
    assert.deepEqual(await used.send(LIST).readStatuses(1), [200])
    const startedAt = performance.now()
    assert.equal(await http.drain(), 0)
    const ms = performance.now() - startedAt
    assert.ok(ms > 400 && ms < 10_000, `the drain took ${ms} ms`)
    assert.equal(await unused.closed, '')
  })

  test('closes idle connections shortly before the deadline if the keep-alive timeout is longer', async (t) => {
    const http = await serve(t, createService(), { drainTimeoutMs: 1000 })
    const idle = [await RawConnection.open(http.server), await RawConnection.open(http.server)] as const
    assert.deepEqual(await idle[0].send(LIST).readStatuses(1), [200])
    const startedAt = performance.now()
    assert.equal(await http.drain(), 0)
    const ms = performance.now() - startedAt
    assert.ok(ms > 850, `the drain took ${ms} ms`)
  })

  test('destroys and counts the other connections at the deadline, and later calls return the same count', async (t) => {
    const { http, responses } = await serveByHand(t, { drainTimeoutMs: 300 })
    const client = await RawConnection.open(http.server)
    client.send(LIST)
    await waitUntil(() => responses.length === 1)
    assert.equal(http.connectionCount(), 1)
    assert.deepEqual(await Promise.all([http.drain(), http.drain()]), [1, 1])
    assert.equal(await client.closed, '')
  })

  test('rejects a late request when its timeout expires', async (t) => {
    const http = await serve(t, createService(), { requestTimeoutMs: 500 })
    const client = await RawConnection.open(http.server)
    const arrived = once(http.server, 'request')
    client.send(POST)
    await arrived
    const drained = http.drain()
    assert.deepEqual(await readAll(client), [[408, 'close']])
    assert.equal(await drained, 0)
  })

  test('ends if the server has never listened', async () => {
    assert.equal(await createServer(createService()).drain(), 0)
  })

  test('emits close once, and leaves nothing that keeps the server in memory', async () => {
    let closed = 0
    async function drain(): Promise<WeakRef<Server>> {
      const http = createServer(() => undefined, { drainTimeoutMs: 100 })
      http.server.on('close', () => closed++)
      await listen(http.server)
      ;(await RawConnection.open(http.server)).send('GET / HTTP/1.1\r\n')
      await http.drain()
      return new WeakRef(http.server)
    }
    const drained = await drain()
    await waitUntil(() => measureHeapUsed() > 0 && drained.deref() === undefined)
    assert.equal(closed, 1)
  })
})

test('Symbol.asyncDispose drains the server', { timeout: 60_000 }, async (t) => {
  const http = await serve(t, createService())
  const client = await RawConnection.open(http.server)
  const arrived = once(http.server, 'request')
  client.send(POST)
  await arrived
  const disposed = http[Symbol.asyncDispose]()
  assert.deepEqual(await readAll(client.send(PLANT)), [[200, 'close']])
  await disposed
  assert.equal(http.server.listening, false)
})
