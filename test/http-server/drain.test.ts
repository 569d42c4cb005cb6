import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import { suite, test, type TestContext } from 'node:test'
import { setImmediate } from 'node:timers/promises'
import { createPlantStore } from '../../src/index.ts'
import type { Limits } from '../../src/http-server/limits.ts'
import { createHttpServer, type HttpServer } from '../../src/http-server/http-server.ts'
import { measureHeapUsed } from '../support/memory-usage.ts'
import { blockEventLoop, countTimers } from '../support/event-loop.ts'
import { connectPair, RawConnection } from '../support/wire/raw-connection.ts'
import { listen, serve as serveUntilEnd } from '../support/wire/service.ts'
import { waitUntil } from '../support/wait-until.ts'

const FIELDS = 'Host: plants\r\nAuthorization: Bearer YWRh\r\n'
const LIST = `GET /plants HTTP/1.1\r\n${FIELDS}\r\n`
const UNFINISHED = `POST /plants HTTP/1.1\r\n${FIELDS}Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{`
const CREATED = /^HTTP\/1\.1 200 OK\r\n[^]*Connection: close\r\n[^]*{"name":"Fern"}$/
const LAST_LIST = /HTTP\/1\.1 200 OK\r\n[^]*Connection: close\r\n[^]*\[\]$/

/** The response to a request that is still incomplete near the end of the drain. */
const REQUEST_TIMEOUT = new RegExp(
  'HTTP/1\\.1 408 Request Timeout\\r\\n[^]*Connection: close\\r\\n\\r\\n' +
    '{"error":40800,"message":"The request did not arrive in time."}$',
)

/** Serves plants. By default, all timeouts are a minute, so that only the drain closes connections. */
async function serve(t: TestContext, limits: Partial<Limits> = {}): Promise<HttpServer> {
  const longTimeouts = { headersTimeoutMs: 60_000, requestTimeoutMs: 60_000, keepAliveTimeoutMs: 60_000 }
  const http = createHttpServer(createPlantStore({ tokens: { YWRh: 'ada' } }), { ...longTimeouts, ...limits })
  await serveUntilEnd(t, http.server)
  return http
}

for (const isShared of [false, true]) {
  const port = isShared ? 'a shared port' : 'its own port'
  test(`a drain of ${port} serves connections that arrive while the event loop is blocked`, async (t) => {
    const http = await serve(t)
    const timers = countTimers()
    // The timers run right after this, including the timer for the quiet period, which is due by then.
    await setImmediate()
    const drained = http.drain(isShared)
    const connecting = Promise.all([1, 2, 3].map(() => RawConnection.open(http.server)))
    // Blocks right after the connections have been initiated.
    process.nextTick(blockEventLoop, 200)
    for (const late of await connecting) assert.match(await late.send(LIST).closed, LAST_LIST)
    await drained
    assert.equal(http.server.listening, false)
    assert.equal(countTimers(), timers)
  })
}

test(
  'a drain destroys connections that arrive while the event loop is blocked for longer than the drain timeout',
  { timeout: 60_000 },
  async (t) => {
    const http = await serve(t, { drainTimeoutMs: 100 })
    await setImmediate()
    const drained = http.drain()
    const connecting = RawConnection.open(http.server)
    process.nextTick(blockEventLoop, 200)
    assert.equal(await (await connecting).closed, '')
    assert.equal(await drained, 1)
  },
)

test('a drain adds Connection: close to the response to a request in progress', { timeout: 60_000 }, async (t) => {
  const http = createHttpServer(() => undefined)
  await serveUntilEnd(t, http.server)
  const requested = once(http.server, 'request') as Promise<[unknown, ServerResponse]>
  const client = await RawConnection.open(http.server)
  client.send(LIST)
  const [, response] = await requested
  const drained = http.drain()
  response.end()
  assert.match(await client.closed, /\r\nConnection: close\r\n/)
  assert.equal(await drained, 0)
})

suite('a request that arrives during a drain while an earlier request is in progress', { timeout: 60_000 }, () => {
  for (const [name, drainFirst] of Object.entries({ 'before the drain': false, 'during the drain': true })) {
    test(`gets a response if the earlier request arrived ${name}`, async (t) => {
      const responses: ServerResponse[] = []
      const http = createHttpServer((_, response) => void responses.push(response))
      await serveUntilEnd(t, http.server)
      const { client, accepted } = await connectPair(http.server)
      const responsesRead = client.readResponses()
      let drained = drainFirst ? http.drain() : undefined
      client.send(LIST)
      await waitUntil(() => responses.length === 1)
      drained ??= http.drain()
      client.send(LIST)
      await waitUntil(() => accepted.bytesRead === 2 * LIST.length)
      for (const count of [1, 2]) {
        await waitUntil(() => responses.length === count)
        responses.at(-1)!.end()
      }
      assert.deepEqual(
        (await responsesRead).map(({ status, headers }) => [status, headers.get('connection')]),
        [
          [200, 'keep-alive'],
          [200, 'close'],
        ],
      )
      assert.equal(await drained, 0)
    })
  }
})

test('a drain drops a request that follows a request with ambiguous framing', { timeout: 60_000 }, async (t) => {
  const responses: ServerResponse[] = []
  const http = createHttpServer((_, response) => void responses.push(response))
  await serveUntilEnd(t, http.server)
  const { client, accepted } = await connectPair(http.server)
  const drained = http.drain()
  const upgrade = LIST.replace('\r\n\r\n', '\r\nUpgrade: h2c\r\n\r\n')
  client.send(upgrade)
  await waitUntil(() => responses.length === 1)
  client.send(LIST)
  await waitUntil(() => accepted.bytesRead === upgrade.length + LIST.length)
  const responsesRead = client.readResponses()
  responses[0]!.end()
  assert.deepEqual(
    (await responsesRead).map(({ headers }) => headers.get('connection')),
    ['close'],
  )
  assert.equal(await drained, 0)
  assert.equal(responses.length, 1)
})

suite('several requests in one packet during a drain', { timeout: 60_000 }, () => {
  test('only the last response to pipelined requests during a drain has Connection: close', async (t) => {
    const http = await serve(t)
    const { client } = await connectPair(http.server)
    const drained = http.drain()
    const responses = await client.send(LIST.repeat(3)).readResponses()
    assert.deepEqual(
      responses.map(({ status, headers }) => [status, headers.get('connection')]),
      [
        [200, 'keep-alive'],
        [200, 'keep-alive'],
        [200, 'close'],
      ],
    )
    assert.equal(await drained, 0)
  })

  test('requests that are pipelined during a drain are dropped if the connection closes', async (t) => {
    let calls = 0
    const http = createHttpServer(() => calls++)
    await serveUntilEnd(t, http.server)
    http.server.on('request', ({ socket }: IncomingMessage) => socket.destroy())
    const { client } = await connectPair(http.server)
    const drained = http.drain()
    assert.equal(await client.send(LIST.repeat(3)).closed, '')
    await drained
    assert.equal(calls, 0)
  })
})

test('a drain closes idle connections and rejects incomplete requests after 90% of the drain timeout', async (t) => {
  const http = await serve(t, { drainTimeoutMs: 2000 })
  const rows: readonly [sent: string, received: RegExp][] = [
    ['', /^$/],
    ['GET /plants HTTP/1.1\r\nHost: pl', REQUEST_TIMEOUT],
    [LIST, /^HTTP\/1\.1 200 OK\r\n[^]*\r\n\r\n\[\]$/],
    [`${LIST}GET /pl`, REQUEST_TIMEOUT],
  ]
  const clients = []
  for (const [sent, received] of rows) {
    // The client keeps its side open.
    const { client, accepted } = await connectPair(http.server, true)
    client.send(sent)
    await waitUntil(() => accepted.bytesRead === sent.length)
    clients.push({ client, received, closed: once(accepted, 'close') })
  }
  const { client: busy } = await connectPair(http.server)
  const startedAt = performance.now()
  const drained = http.drain()
  busy.send(UNFINISHED)
  for (const { client, received, closed } of clients) {
    await closed
    const ms = performance.now() - startedAt
    assert.ok(ms > 1790, `the connection was closed after ${ms} ms`)
    client.socket.end()
    assert.match(await client.closed, received)
  }
  busy.send('"id":1,"name":"Fern"}'.padEnd(99))
  assert.match(await busy.closed, CREATED)
  assert.equal(await drained, 0)
})

test('draining a shared port keeps idle connections open until 90% of the drain timeout has elapsed', async (t) => {
  const http = await serve(t, { drainTimeoutMs: 1000 })
  const startedAt = performance.now()
  const drained = http.drain(true)
  // The server accepts this connection, because it begins before the server stops listening, but doesn't wait for it.
  const client = await RawConnection.open(http.server)
  await client.closed
  const ms = performance.now() - startedAt
  assert.ok(ms > 890, `the connection was closed after ${ms} ms`)
  await drained
})

test("a drain doesn't wait for a rejected client that never closes its connection", async (t) => {
  const http = await serve(t, { drainTimeoutMs: 500 })
  const connection = await RawConnection.open(http.server, true)
  const drained = http.drain()
  connection.send('nonsense\r\n\r\n')
  assert.equal(await drained, 0)
  connection.socket.end()
  assert.match(await connection.closed, /^HTTP\/1\.1 400 /)
})

test(
  'a drain rejects an incomplete request with 408 when its request timeout expires',
  { timeout: 60_000 },
  async (t) => {
    const http = await serve(t, { drainTimeoutMs: 1000, requestTimeoutMs: 900, checkIntervalMs: 20 })
    const { client: connection } = await connectPair(http.server)
    const drained = http.drain()
    connection.send(UNFINISHED)
    assert.match(await connection.closed, REQUEST_TIMEOUT)
    await drained
  },
)

test('a drain completes even if accept() fails', { timeout: 60_000 }, async (t) => {
  const http = await serve(t)
  http.server.on('error', () => undefined)
  const drained = http.drain()
  http.server.emit('error', new Error('accept EPERM'))
  await drained
})

suite('a drained server', { timeout: 60_000 }, () => {
  for (const count of [0, 1]) {
    test(`emits close once and is garbage-collected (${count} connections at the beginning of the drain)`, async () => {
      let closed = 0
      async function drain(): Promise<WeakRef<Server>> {
        const http = createHttpServer(() => undefined, { drainTimeoutMs: 500 })
        http.server.on('close', () => closed++)
        await listen(http.server)
        for (let i = 0; i < count; i++) (await RawConnection.open(http.server)).send('GET / HTTP/1.1\r\n')
        await http.drain()
        return new WeakRef(http.server)
      }
      const drained = await drain()
      await waitUntil(() => measureHeapUsed() > 0 && drained.deref() === undefined)
      assert.equal(closed, 1)
    })
  }
})
