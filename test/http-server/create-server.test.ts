import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { Socket } from 'node:net'
import { suite, test } from 'node:test'
import { createPlantStore } from '../../src/index.ts'
import { createServer, type ServerOptions } from '../../src/http-server/create-server.ts'
import { connectPair, RawConnection } from '../support/wire/raw-connection.ts'
import { close, listen, serve } from '../support/wire/service.ts'

const GET = 'GET / HTTP/1.1\r\nHost: a\r\n\r\n'
const UPGRADE = 'Host: a\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n'

const plants = createPlantStore({ tokens: { secret: 'ada' } })

test('createServer() returns a server that rejects late requests with JSON and can be drained', async (t) => {
  const http = createServer(plants, { headersTimeoutMs: 100, checkIntervalMs: 20 })
  await listen(http.server)
  t.after(() => close(http.server))
  const late = await RawConnection.open(http.server)
  assert.match(await late.send('GET /plants').closed, /^HTTP\/1\.1 408 [^]*{"error":40800,/)
  const closed = once(http.server, 'close')
  const idle = await RawConnection.open(http.server)
  idle.send('GET /plants HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer secret\r\n\r\n')
  await idle.waitFor(/\[\]$/)
  idle.socket.end()
  assert.equal(await http.drain(), 0)
  await closed
})

test('Symbol.asyncDispose drains the server', { timeout: 60_000 }, async () => {
  const http = createServer(plants)
  await listen(http.server)
  const client = await RawConnection.open(http.server)
  client.send('GET /plants HTTP/1.1\r\nHost: a\r\n')
  const disposed = http[Symbol.asyncDispose]()
  assert.match(await client.send('Authorization: Bearer secret\r\n\r\n').closed, /^HTTP\/1\.1 200 OK\r\n/)
  await disposed
  assert.equal(http.server.listening, false)
  await createServer(plants)[Symbol.asyncDispose]()
})

suite('drain() returns the number of connections that it destroyed when it timed out', { timeout: 60_000 }, () => {
  for (const [name, event, request, received] of [
    ['a connection with a pending response', 'request', GET, ''],
    [
      'a connection with a CONNECT request after a pending response',
      'connect',
      `${GET}CONNECT a:80 HTTP/1.1\r\n\r\n`,
      '',
    ],
    ['an upgraded connection', 'upgrade', `GET / HTTP/1.1\r\n${UPGRADE}`, 'HTTP/1.1 101 Echo\r\n\r\n'],
  ] as const) {
    test(name, async (t) => {
      const http = createServer(() => undefined, { drainTimeoutMs: 300 })
      http.server.on('upgrade', (_, socket) => socket.write('HTTP/1.1 101 Echo\r\n\r\n'))
      await listen(http.server)
      t.after(() => close(http.server))
      const arrived = once(http.server, event)
      const client = await RawConnection.open(http.server)
      client.send(request)
      await arrived
      assert.equal(http.connectionCount(), 1)
      assert.deepEqual(await Promise.all([http.drain(), http.drain()]), [1, 1])
      assert.equal(await http.drain(), 1)
      assert.equal(await client.closed, received)
    })
  }
})

test('an upgraded connection keeps the timeout set by the upgrade listener', { timeout: 60_000 }, async (t) => {
  const largeBody = Buffer.alloc(10_000_000)
  const http = createServer((_, response) => response.write(largeBody), { stallTimeoutMs: 50 })
  await serve(t, http.server)
  http.server.on('upgrade', (_, socket: Socket) => socket.setTimeout(60_000).write(largeBody))
  const [upgraded, other] = [await connectPair(http.server), await connectPair(http.server)]
  for (const { client } of [upgraded, other]) client.socket.pause()
  const stalled = once(other.accepted, 'close')
  upgraded.client.send(`GET / HTTP/1.1\r\n${UPGRADE}`)
  await once(http.server, 'upgrade')
  other.client.send(GET)
  await stalled
  const { timeout } = upgraded.accepted
  upgraded.accepted.destroy()
  assert.equal(timeout, 60_000)
})

test('an upgrade request is handled as an ordinary request if all upgrade listeners were removed', async (t) => {
  const http = createServer((_, response) => response.end('plain'))
  const [first, second] = [() => undefined, () => undefined]
  http.server.on('upgrade', first).once('upgrade', second).off('upgrade', first).off('upgrade', second)
  const client = await RawConnection.open(await serve(t, http.server))
  client.send(`GET / HTTP/1.1\r\n${UPGRADE}`)
  await client.waitFor(/^HTTP\/1\.1 200 [^]*plain$/)
  client.socket.destroy()
})

suite('createServer() throws', () => {
  const rows: readonly [options: unknown, message: string, listener?: unknown][] = [
    [{}, "listener must be a function, not 'x'", 'x'],
    [{ headersTimeout: 1 }, 'unknown option "headersTimeout"'],
    [{ headersTimeoutMs: 0 }, 'options.headersTimeoutMs must be a whole number from 1 to 2147483647, not 0'],
    [{ drainTimeoutMs: '1s' }, "options.drainTimeoutMs must be a whole number from 1 to 2147483647, not '1s'"],
    [{ maxHeaderBytes: 1 }, 'options.maxHeaderBytes must be a whole number from 1024 to 1048576, not 1'],
    [{ maxConnections: 0 }, 'options.maxConnections must be a whole number from 1 to 9007199254740991, not 0'],
    [null, 'options must be an object, not null'],
  ]
  for (const [options, message, listener] of rows) {
    test(message, () => {
      assert.throws(() => createServer((listener ?? plants) as typeof plants, options as ServerOptions), {
        name: 'TypeError',
        message,
      })
    })
  }
})
