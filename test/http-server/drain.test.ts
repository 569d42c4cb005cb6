import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { Server } from 'node:http'
import { suite, test, type TestContext } from 'node:test'
import { setImmediate } from 'node:timers/promises'
import { createPlantStore } from '../../src/index.ts'
import type { Limits } from '../../src/http-server/limits.ts'
import { createHttpServer, type HttpServer } from '../../src/http-server/http-server.ts'
import { heapUsed } from '../support/heap.ts'
import { block, countTimers } from '../support/event-loop.ts'
import { openBoth, RawConnection } from '../support/wire/raw-connection.ts'
import { listen, portOf, serve as serveUntilEnd } from '../support/wire/service.ts'
import { until } from '../support/until.ts'

const FIELDS = 'Host: plants\r\nAuthorization: Bearer YWRh\r\n'
const LIST = `GET /plants HTTP/1.1\r\n${FIELDS}\r\n`
const UNFINISHED = `POST /plants HTTP/1.1\r\n${FIELDS}Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{`
const CREATED = /^HTTP\/1\.1 200 OK\r\n[^]*Connection: close\r\n[^]*{"name":"Fern"}$/
const LAST_LIST = /HTTP\/1\.1 200 OK\r\n[^]*Connection: close\r\n[^]*\[\]$/

/** What a client sees if its request has not come by the end of the drain. */
const LATE = new RegExp(
  'HTTP/1\\.1 408 Request Timeout\\r\\n[^]*Connection: close\\r\\n\\r\\n' +
    '{"error":40800,"message":"The request did not arrive in time."}$',
)

/** Serves plants with the token of ada. Clients have a minute for everything, unless the limits say otherwise. */
async function serve(t: TestContext, limits: Partial<Limits> = {}): Promise<HttpServer> {
  const patience = { headersTimeoutMs: 60_000, requestTimeoutMs: 60_000, keepAliveTimeoutMs: 60_000 }
  const http = createHttpServer(createPlantStore({ tokens: { YWRh: 'ada' } }), { ...patience, ...limits })
  await serveUntilEnd(t, http.server)
  return http
}

/** That it took nothing like the time for a drain. */
function assertQuick(startedAt: number): void {
  const ms = performance.now() - startedAt
  assert.ok(ms < 5000, `it took ${ms} ms`)
}

suite('a drain goes on listening', { timeout: 60_000 }, () => {
  test('for a moment after the last connection has closed', async (t) => {
    const http = await serve(t)
    const { client, accepted } = await openBoth(http.server)
    const port = portOf(http.server)
    const timers = countTimers()
    const startedAt = performance.now()
    const drained = http.drain()
    client.socket.end()
    await once(accepted, 'close')
    const late = await RawConnection.open(port)
    assert.match(await late.send(LIST).closed, LAST_LIST)
    await drained
    assertQuick(startedAt)
    assert.equal(http.server.listening, false)
    assert.equal(countTimers(), timers)
  })

  for (const isShared of [false, true]) {
    test(`until it has accepted what came while the process was busy, if others ${isShared ? '' : 'do not '}listen beside it`, async (t) => {
      const http = await serve(t)
      const startedAt = performance.now()
      const drained = http.drain(isShared)
      // The timers come next, and find that the quiet has lasted for long enough.
      await setImmediate()
      const connecting = Promise.all([1, 2, 3].map(() => RawConnection.open(http.server)))
      // After the tick in which the connections are begun.
      process.nextTick(block, 200)
      for (const late of await connecting) assert.match(await late.send(LIST).closed, LAST_LIST)
      await drained
      assertQuick(startedAt)
    })
  }
})

suite('once it no longer listens, a drain closes a connection', { timeout: 60_000 }, () => {
  const rows: readonly [name: string, sent: string, received: RegExp][] = [
    ['that has sent nothing', '', /^$/],
    ['that has sent half a header', 'GET /plants HTTP/1.1\r\nHost: pl', LATE],
    ['that waits after an answer', LIST, /^HTTP\/1\.1 200 OK\r\n[^]*\r\n\r\n\[\]$/],
    ['that has sent half a header after an answer', `${LIST}GET /pl`, LATE],
  ]
  for (const [name, sent, received] of rows) {
    test(name, async (t) => {
      const http = await serve(t, { drainTimeoutMs: 1000 })
      // It keeps its side open.
      const { client, accepted } = await openBoth(http.server, true)
      client.send(sent)
      await until(() => accepted.bytesRead === sent.length)
      const startedAt = performance.now()
      await http.drain()
      const ms = performance.now() - startedAt
      assert.ok(ms > 890, `it was closed after ${ms} ms`)
      client.socket.end()
      assert.match(await client.closed, received)
    })
  }

  test('that a client keeps open after it was refused', async (t) => {
    const http = await serve(t, { drainTimeoutMs: 500 })
    const connection = await RawConnection.open(http.server, true)
    const drained = http.drain()
    const refused = once(http.server, 'clientError')
    connection.send('nonsense\r\n\r\n')
    await refused
    await drained
    connection.socket.end()
    assert.match(await connection.closed, /^HTTP\/1\.1 400 /)
  })

  test('but not if its request is being answered', async (t) => {
    const http = await serve(t, { drainTimeoutMs: 2000 })
    const [{ client: silent }, { client: connection }] = [await openBoth(http.server), await openBoth(http.server)]
    const drained = http.drain()
    connection.send(UNFINISHED)
    await silent.closed
    connection.send('"id":1,"name":"Fern"}'.padEnd(99))
    assert.match(await connection.closed, CREATED)
    await drained
  })
})

test('a request that is late is refused in time when the server no longer listens', { timeout: 60_000 }, async (t) => {
  const http = await serve(t, { drainTimeoutMs: 1000, requestTimeoutMs: 900, checkIntervalMs: 20 })
  const { client: connection } = await openBoth(http.server)
  const drained = http.drain()
  connection.send(UNFINISHED)
  assert.match(await connection.closed, LATE)
  await drained
})

test('a drain goes on if the system refuses the server a connection', { timeout: 60_000 }, async (t) => {
  const http = await serve(t)
  http.server.on('error', () => undefined)
  const drained = http.drain()
  http.server.emit('error', new Error('accept EPERM'))
  await drained
})

suite('a server that has drained', { timeout: 60_000 }, () => {
  for (const count of [0, 1]) {
    test(`emits close once, and is collected, if ${count} connections were open when it stopped listening`, async () => {
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
      await until(() => heapUsed() > 0 && drained.deref() === undefined)
      assert.equal(closed, 1)
    })
  }
})
