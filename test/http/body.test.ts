import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type IncomingMessage } from 'node:http'
import { constants, type ClientHttp2Stream } from 'node:http2'
import { PassThrough } from 'node:stream'
import { suite, test, type TestContext } from 'node:test'
import { discardBody, readBody as readBodyThen } from '../../src/http/body.ts'
import { HttpError } from '../../src/http/errors.ts'
import { serveAndConnect } from '../support/wire/client.ts'
import { countTimers } from '../support/event-loop.ts'
import { measureHeapUsed, measureMemoryUsed } from '../support/memory-usage.ts'
import { RawConnection } from '../support/wire/raw-connection.ts'
import { createService, serve } from '../support/wire/service.ts'
import { waitUntil } from '../support/wait-until.ts'

const LIMIT = 10
const TOO_LARGE = new HttpError('bodyTooLarge', 'The body is larger than 10 bytes.')

/** Sends the bytes of a request, and resolves with the request that the server receives. */
async function sendAndGetRequest(
  t: TestContext,
  sent: string,
): Promise<{ client: RawConnection; request: IncomingMessage }> {
  const server = await serve(t, () => undefined)
  const announced = once(server, 'request') as Promise<[IncomingMessage]>
  const client = await RawConnection.open(server)
  client.send(sent)
  const [request] = await announced
  return { client, request }
}

/** Resolves with the body or the error, or with undefined if the request closes without either. */
function readBody(
  request: IncomingMessage,
  contentLength: number,
  maxBytes: number,
): Promise<Uint8Array | HttpError | undefined> {
  return new Promise((resolve) => {
    readBodyThen(request, contentLength, maxBytes, resolve)
    if (request.closed) setImmediate(resolve, undefined)
    request.on('close', () => resolve(undefined))
  })
}

const createChunkedRequest = (body: string): string => {
  const chunk = body === '' ? '' : `${body.length.toString(16)}\r\n${body}\r\n`
  return `POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n${chunk}`
}

type Action = (client: RawConnection, request: IncomingMessage) => unknown

const noop: Action = () => undefined
const disconnect: Action = (client) => client.socket.destroy()

async function disconnectBefore(client: RawConnection, request: IncomingMessage): Promise<void> {
  await waitUntil(() => request.readableLength > 0)
  client.socket.destroy()
  await waitUntil(() => request.closed)
}

function sendAfterFirstChunk(rest: string): Action {
  return async (client, request) => {
    await once(request, 'data')
    client.send(rest)
  }
}

suite('a request body', { timeout: 60_000 }, () => {
  const whole = '0123456789'
  const end = '0\r\n\r\n'
  const announced = (length: number): string => `POST / HTTP/1.1\r\nHost: a\r\nContent-Length: ${length}\r\n\r\n`
  const tooLong = createChunkedRequest(`${whole}0`) + end
  for (const [name, sent, before, meanwhile, expected] of [
    ['is read if its size is exactly the limit', announced(10) + whole, noop, noop, whole],
    [
      'is read completely from several chunks',
      createChunkedRequest('01234'),
      noop,
      sendAfterFirstChunk(`5\r\n56789\r\n${end}`),
      whole,
    ],
    [
      'is read even if the client has disconnected after sending the whole body',
      createChunkedRequest(whole) + end,
      disconnectBefore,
      noop,
      whole,
    ],
    ['is rejected immediately if its Content-Length exceeds the limit', announced(11), noop, noop, TOO_LARGE],
    [
      'is rejected as soon as its chunks exceed the limit',
      createChunkedRequest('012345'),
      noop,
      sendAfterFirstChunk('5\r\n67890\r\n'),
      TOO_LARGE,
    ],
    ['is rejected if it is too large, even if the client has disconnected', tooLong, disconnectBefore, noop, TOO_LARGE],
    [
      'is ignored if the client disconnects within the body',
      createChunkedRequest('01234'),
      noop,
      disconnect,
      undefined,
    ],
    [
      'is ignored if the client disconnected within the body before the service reads it',
      createChunkedRequest('01234'),
      disconnectBefore,
      noop,
      undefined,
    ],
  ] as const) {
    test(name, async (t) => {
      const { client, request } = await sendAndGetRequest(t, sent)
      await before(client, request)
      const body = readBody(request, Number(request.headers['content-length'] ?? 0), LIMIT)
      void meanwhile(client, request)
      assert.deepEqual(await body, typeof expected === 'string' ? Buffer.from(expected) : expected)
    })
  }

  test('an incomplete HTTP/2 body is ignored if the client closes the stream', async (t) => {
    let body: unknown
    const client = await serveAndConnect(t, 'h2c', (request) => {
      body = readBody(request, 0, LIMIT)
    })
    const stream = client.open({ method: 'POST', path: '/', fields: [], body: '01234' }) as unknown as ClientHttp2Stream
    stream.on('error', () => undefined).write('0')
    await waitUntil(() => body !== undefined)
    stream.close(constants.NGHTTP2_CANCEL)
    assert.equal(await body, undefined)
  })

  test('a buffered request body is read even if the stream has been destroyed', async () => {
    const request = new PassThrough().resume()
    request.push('0')
    request.push('1')
    assert.deepEqual(await readBody(request.destroy() as unknown as IncomingMessage, 0, LIMIT), Buffer.from('01'))
  })

  test('the body of a mock request is ignored if the request emits an error', async () => {
    const request = new PassThrough() as unknown as IncomingMessage
    const body = readBody(request, 0, LIMIT)
    request.destroy(new Error('made up'))
    assert.equal(await body, undefined)
  })
})

test(
  'a request body is read even while process.nextTick and queueMicrotask are mocked',
  { timeout: 60_000 },
  async (t) => {
    const server = await serve(t, (request, response) => {
      const { mock: nextTick } = t.mock.method(process, 'nextTick', () => undefined)
      const { mock: queueMicrotask } = t.mock.method(globalThis, 'queueMicrotask', () => undefined)
      readBodyThen(request, 2, LIMIT, (body) => response.end(body))
      nextTick.restore()
      queueMicrotask.restore()
    })
    const client = await RawConnection.open(server)
    client.send('POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nok')
    await client.waitFor(/ok$/)
    client.socket.destroy()
  },
)

test('a rejected request body is freed from memory', { timeout: 60_000 }, async (t) => {
  const { client, request } = await sendAndGetRequest(t, createChunkedRequest(''))
  const bytes = 30_000_000
  const before = process.memoryUsage().arrayBuffers
  const body = readBody(request, 0, bytes)
  client.send(`${(bytes + 1).toString(16)}\r\n`).send(Buffer.alloc(bytes + 1))
  assert.ok((await body) instanceof HttpError)
  await waitUntil(() => {
    measureHeapUsed()
    return client.socket.writableLength === 0 && process.memoryUsage().arrayBuffers - before < bytes / 2
  })
  client.socket.destroy()
})

test('a request body in 1-byte chunks uses at most twice its size in memory', { timeout: 60_000 }, async (t) => {
  const requests: IncomingMessage[] = []
  const maxBytes = 65_536
  const server = await serve(t, (request) => requests.push(request))
  const whole = Buffer.from('a'.repeat(maxBytes - 1) + 'b')

  /** Sends bodies, and returns the memory that each body uses before its last byte. */
  async function sendBodies(count: number): Promise<number> {
    const clients = await Promise.all(Array.from({ length: count }, () => RawConnection.open(server)))
    for (const client of clients) client.send('POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n')
    await waitUntil(() => requests.length === count)
    const before = await measureMemoryUsed()
    let chunks = 0
    const bodies = requests.splice(0).map(async (request) => {
      const body = readBody(request, 0, maxBytes)
      request.on('data', () => chunks++)
      return body
    })
    for (const client of clients) client.send('1\r\na\r\n'.repeat(maxBytes - 1))
    await waitUntil(() => chunks === count * (maxBytes - 1))
    const taken = ((await measureMemoryUsed()) - before) / count
    for (const client of clients) client.send('1\r\nb\r\n0\r\n\r\n')
    assert.deepEqual(await Promise.all(bodies), Array<Buffer>(count).fill(whole))
    return taken
  }

  // Warm up with one body, so that code compiled by V8 isn't counted.
  await sendBodies(1)
  const taken = await sendBodies(8)
  assert.ok(taken < 2 * maxBytes, `each body uses ${Math.round(taken)} bytes`)
})

test('a short request body does not retain the larger buffer in which it arrived', { timeout: 60_000 }, async () => {
  const request = new PassThrough()
  const body = readBody(request as unknown as IncomingMessage, 0, LIMIT)
  request.end(Buffer.alloc(LIMIT + 1, '1').subarray(LIMIT))
  const { buffer } = (await body) as Uint8Array
  assert.deepEqual([buffer.byteLength, Buffer.from(buffer).toString('latin1', 0, 1)], [2, '1'])
})

test('discardBody stops reading after 16 MiB', { timeout: 60_000 }, async (t) => {
  const bytes = 16 * 1024 * 1024
  const head = `POST / HTTP/1.1\r\nHost: a\r\nContent-Length: ${bytes + 2}\r\n\r\n`
  const { client, request } = await sendAndGetRequest(t, head)
  discardBody(request, () => undefined)
  client.send(Buffer.alloc(bytes))
  await waitUntil(() => request.socket.bytesRead === head.length + bytes && request.readableLength === 0)
  const isPausedAtBound = request.isPaused()
  client.send('1')
  await waitUntil(() => request.isPaused())
  assert.equal(isPausedAtBound, false)
  client.socket.destroy()
})

suite('discardBody calls back exactly once and clears its timer', { timeout: 60_000 }, () => {
  const end: Action = (client) => client.send('5')
  for (const [name, act] of Object.entries({
    'the body ends': end,
    'the client disconnects': disconnect,
    'the timeout expires': noop,
  })) {
    test(`when ${name}`, async (t) => {
      const { client, request } = await sendAndGetRequest(
        t,
        'POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\n1234',
      )
      let times = 0
      const timersBefore = countTimers()
      discardBody(request, () => times++)
      act(client, request)
      await waitUntil(() => times > 0)
      assert.equal(countTimers(), timersBefore)
      client.socket.destroy()
      await waitUntil(() => request.closed)
      assert.equal(times, 1)
    })
  }
})

test('discardBody calls back at the end of a request that never emits close', async () => {
  const request = new PassThrough({ autoDestroy: false })
  let times = 0
  discardBody(request as unknown as IncomingMessage, () => times++)
  request.end('12345')
  await once(request, 'end')
  assert.deepEqual([times, request.closed], [1, false])
})

for (const optimizeEmptyRequests of [false, true]) {
  test(`a POST without a body is rejected because the body is empty (optimizeEmptyRequests: ${optimizeEmptyRequests})`, async (t) => {
    const server = await serve(t, createServer({ optimizeEmptyRequests }, createService()))
    const connection = await RawConnection.open(server)
    const fields = 'Host: a\r\nAuthorization: Bearer ada\r\nContent-Type: application/json\r\nConnection: close\r\n'
    connection.send(`POST /plants HTTP/1.1\r\n${fields}\r\n`)
    assert.match(await connection.closed, /^HTTP\/1\.1 400 [^]*"The body is empty: expected a value at byte 0\."}$/)
  })
}
