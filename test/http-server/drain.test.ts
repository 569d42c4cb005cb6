import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { Server } from 'node:http'
import type { Socket } from 'node:net'
import { suite, test, type TestContext } from 'node:test'
import { setImmediate } from 'node:timers/promises'
import { createPlantStore } from '../../src/index.ts'
import type { Limits } from '../../src/http-server/limits.ts'
import { createHttpServer, type HttpServer } from '../../src/http-server/http-server.ts'
import { heapUsed } from '../support/heap.ts'
import { block, countTimers } from '../support/event-loop.ts'
import { openBoth, RawConnection } from '../support/wire/raw-connection.ts'
import { close, listen, portOf } from '../support/wire/service.ts'
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

interface TestServer extends HttpServer {
  connect(): Promise<RawConnection>
  /** Opens a connection, and settles with both its ends once the server has accepted it. */
  accept(): Promise<{ connection: RawConnection; socket: Socket }>
}

/** Serves plants with the token of ada. Clients have a minute for everything, unless the limits say otherwise. */
async function serve(t: TestContext, limits: Partial<Limits> = {}): Promise<TestServer> {
  const patience = { headersTimeoutMs: 60_000, requestTimeoutMs: 60_000, keepAliveTimeoutMs: 60_000 }
  const plants = createPlantStore({ tokens: { YWRh: 'ada' } })
  const http = createHttpServer(plants, { ...patience, ...limits })
  await listen(http.server)
  // A server that has closed has none.
  const port = portOf(http.server)
  t.after(() => close(http.server))
  async function accept(): Promise<{ connection: RawConnection; socket: Socket }> {
    const { client, accepted } = await openBoth(http.server)
    return { connection: client, socket: accepted }
  }
  return { ...http, connect: () => RawConnection.open(port), accept }
}

/** That it took nothing like the time for a drain. */
function assertQuick(startedAt: number): void {
  const ms = performance.now() - startedAt
  assert.ok(ms < 5000, `it took ${ms} ms`)
}

suite('a drain goes on listening', { timeout: 60_000 }, () => {
  test('for a moment after the last connection has closed', async (t) => {
    const http = await serve(t)
    const { connection, socket } = await http.accept()
    const timers = countTimers()
    const startedAt = performance.now()
    const drained = http.drain()
    connection.socket.end()
    await once(socket, 'close')
    const late = await http.connect()
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
      const connecting = Promise.all([http.connect(), http.connect(), http.connect()])
      // After the tick in which the connections are begun.
      process.nextTick(block, 200)
      for (const late of await connecting) assert.match(await late.send(LIST).closed, LAST_LIST)
      await drained
      assertQuick(startedAt)
    })
  }

  test('for 80 % of its time if a connection stays open', async (t) => {
    const http = await serve(t, { drainTimeoutMs: 1000 })
    const { connection } = await http.accept()
    connection.send(UNFINISHED)
    const timers = countTimers()
    const startedAt = performance.now()
    const drained = http.drain()
    await until(() => !http.server.listening)
    const elapsed = performance.now() - startedAt
    assert.ok(elapsed > 790, `${elapsed} ms`)
    connection.send('"id":1,"name":"Fern"}'.padEnd(99))
    assert.match(await connection.closed, CREATED)
    await drained
    assert.equal(countTimers(), timers)
  })
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
      const { connection } = await http.accept()
      if (sent.startsWith(LIST)) await connection.send(sent).receive(/\[\]$/)
      else connection.send(sent)
      const startedAt = performance.now()
      await http.drain()
      const ms = performance.now() - startedAt
      assert.ok(ms > 890, `it was closed after ${ms} ms`)
      assert.match(await connection.closed, received)
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

  test('even if the client keeps its side open', async (t) => {
    const http = await serve(t, { drainTimeoutMs: 1000 })
    const connection = await RawConnection.open(http.server, true)
    connection.send('GET /plants HTTP/1.1\r\n')
    await http.drain()
    connection.socket.end()
    assert.match(await connection.closed, LATE)
  })

  test('but not if its request is being answered', async (t) => {
    const http = await serve(t, { drainTimeoutMs: 2000 })
    const { connection: silent } = await http.accept()
    const { connection } = await http.accept()
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
  const { connection } = await http.accept()
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
