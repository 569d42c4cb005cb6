import assert from 'node:assert/strict'
import { once } from 'node:events'
import { suite, test, type TestContext } from 'node:test'
import { createServer, LIMITS, type ServerOptions } from '../../src/http-server/create-server.ts'
import { createPlantStore, memoryStore } from '../../src/index.ts'
import { waitUntil } from '../support/wait-until.ts'
import { connectPair, RawConnection } from '../support/raw-connection.ts'
import { createService, serve as serveUntilEnd } from '../support/service.ts'

const FIELDS = 'Host: plants\r\nAuthorization: Bearer ada\r\n'
const LIST = `GET /plants HTTP/1.1\r\n${FIELDS}\r\n`
const POST = `POST /plants HTTP/1.1\r\n${FIELDS}Content-Type: application/json\r\n`

/** Even a part of these plants exceeds what the kernel buffers for a client that never reads. */
const PLANT_COUNT = 500
const NAME = 'x'.repeat(16_000)

async function serve(t: TestContext, options: ServerOptions, plantCount = 0) {
  const store = memoryStore()
  for (let id = 1; id <= plantCount; id++) await store.create('ada', { id: BigInt(id), name: NAME })
  const http = createServer(createService({ store }), options)
  await serveUntilEnd(t, http.server)
  return http
}

test('an idle connection is closed 1 s after the timeout that its Keep-Alive header announces', async (t) => {
  const { server } = await serve(t, { keepAliveTimeoutMs: 60_000 })
  const { client, accepted } = await connectPair(server)
  await client.send(LIST).waitFor(/^Keep-Alive: timeout=60\r\n[^]*\[\]$/m)
  // The client may receive the response before the server sets the timeout.
  await waitUntil(() => accepted.timeout === 61_000)
  client.socket.destroy()
})

test('the largest timeouts work, without a warning', async (t) => {
  const warnings: Error[] = []
  const onWarning = (warning: Error): unknown => warnings.push(warning)
  process.on('warning', onWarning)
  t.after(() => process.off('warning', onWarning))
  const timeouts = Object.entries(LIMITS).filter(([name]) => name.endsWith('Ms'))
  const http = await serve(t, Object.fromEntries(timeouts.map(([name, { max }]) => [name, max])))
  const { client, accepted } = await connectPair(http.server)
  await client.send(LIST).waitFor(/\[\]$/)
  await waitUntil(() => accepted.timeout! > 2 ** 30)
  const drained = http.drain()
  assert.deepEqual(await client.send(LIST).readStatuses(1), [200])
  await drained
  assert.deepEqual(warnings, [])
})

suite('a slow client', { timeout: 60_000 }, () => {
  for (const [name, begun, received] of [
    [
      'that sends its header byte by byte gets 408',
      'GET /plants HTTP/1.1\r\nX:',
      /^HTTP\/1\.1 408 [^]*"error":40800[^}]*}$/,
    ],
    [
      'that sends its body byte by byte gets 408',
      `${POST}Content-Length: 1000\r\n\r\n`,
      /^HTTP\/1\.1 408 [^]*"error":40800[^}]*}$/,
    ],
    [
      'that continues to send after its response is disconnected',
      `${POST.replace('Bearer ada', 'None')}Content-Length: 1000\r\n\r\n`,
      /^HTTP\/1\.1 401 [^]*"error":40100[^}]*}$/,
    ],
    ['that sends nothing is disconnected', '', /^$/],
  ] as const) {
    test(name, async (t) => {
      const { server } = await serve(t, { headersTimeoutMs: 200, requestTimeoutMs: 300 })
      const { client, accepted } = await connectPair(server)
      const closed = once(accepted, 'close')
      client.send(begun)
      const drip = setInterval(() => begun !== '' && client.send(' '), 20)
      t.after(() => clearInterval(drip))
      assert.match(await client.closed, received)
      await closed
    })
  }

  test('that reads steadily gets a list that takes longer than the stall timeout', async (t) => {
    const { server } = await serve(t, { stallTimeoutMs: 1000 }, PLANT_COUNT)
    const { socket } = (await RawConnection.open(server)).send(LIST.replace('Host', 'Connection: close\r\nHost'))
    let length = 0
    let last = ''
    const startedAt = performance.now()
    socket.removeAllListeners('data').pause()
    socket.on('data', (data: Buffer) => {
      length += data.length
      last = data.toString('latin1').slice(-5)
      socket.pause()
    })
    // About 4 MB/s, and the list has 8 MB.
    const pace = setInterval(() => socket.resume(), 15)
    t.after(() => clearInterval(pace))
    await once(socket, 'close')
    assert.ok(length > PLANT_COUNT * NAME.length, `the client received ${length} bytes`)
    assert.equal(last, '0\r\n\r\n')
    assert.ok(performance.now() - startedAt > 1000)
  })
})

suite('a client that never reads is disconnected', { timeout: 60_000 }, () => {
  for (const [name, extra] of [
    ['after the stall timeout', ''],
    ['even if it keeps sending a header', 'X'],
  ] as const) {
    test(name, async (t) => {
      const limits = { stallTimeoutMs: 300, headersTimeoutMs: 300, requestTimeoutMs: 300 }
      const { server } = await serve(t, limits, PLANT_COUNT)
      const { client, accepted } = await connectPair(server)
      client.socket.pause().write(LIST)
      const drip = setInterval(() => extra !== '' && client.send(extra), 20)
      t.after(() => clearInterval(drip))
      await once(accepted, 'close')
      client.socket.destroy()
    })
  }
})

test('connections beyond maxConnections are dropped', async (t) => {
  const { server } = await serve(t, { maxConnections: 1 })
  const first = await RawConnection.open(server)
  const dropped = once(server, 'drop')
  const second = await RawConnection.open(server)
  await dropped
  assert.match(await second.closed, /^(<ECONNRESET>)?$/)
  assert.deepEqual(await first.send(LIST).readStatuses(1), [200])
  first.socket.destroy()
})

suite('createServer() throws a TypeError:', () => {
  const plants = createPlantStore({ tokens: { ada: 'ada' } })
  for (const [options, message, listener] of [
    [{}, 'listener must be a function, not of type string', 'x'],
    [{ headersTimeout: 1 }, 'unknown option "headersTimeout"'],
    [{ headersTimeoutMs: 0 }, 'options.headersTimeoutMs must be a whole number from 1 to 2147483647, not 0'],
    [{ drainTimeoutMs: 2 ** 31 }, 'options.drainTimeoutMs must be a whole number from 1 to 2147483647, not 2147483648'],
    [{ stallTimeoutMs: '1s' }, 'options.stallTimeoutMs must be a whole number from 1 to 2147483647, not 1s'],
    [{ maxHeaderBytes: 1 }, 'options.maxHeaderBytes must be a whole number from 1024 to 1048576, not 1'],
    [{ maxConnections: 0 }, 'options.maxConnections must be a whole number from 1 to 9007199254740991, not 0'],
  ] as const) {
    test(message, () => {
      const call = () => createServer((listener ?? plants) as typeof plants, options as ServerOptions)
      assert.throws(call, { name: 'TypeError', message })
    })
  }

  test('not for undefined options', () => {
    assert.equal(createServer(plants, { maxConnections: undefined }).server.maxConnections, 1000)
  })
})
