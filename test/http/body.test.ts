import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type IncomingMessage } from 'node:http'
import { constants, type ClientHttp2Stream } from 'node:http2'
import { PassThrough } from 'node:stream'
import { suite, test, type TestContext } from 'node:test'
import { discardBody, readBody as readBodyThen } from '../../src/http/body.ts'
import { HttpError } from '../../src/http/errors.ts'
import { serveIn } from '../support/wire/client.ts'
import { countTimers } from '../support/event-loop.ts'
import { heapUsed, memoryUsed } from '../support/heap.ts'
import { RawConnection } from '../support/wire/raw-connection.ts'
import { createService, serve } from '../support/wire/service.ts'
import { until } from '../support/until.ts'

const LIMIT = 10
const TOO_LARGE = new HttpError('bodyTooLarge', 'The body is larger than 10 bytes.')

/** Sends the bytes of a request, and gives it as it is announced. */
async function announce(t: TestContext, sent: string): Promise<{ client: RawConnection; request: IncomingMessage }> {
  const server = await serve(t, () => undefined)
  const announced = once(server, 'request') as Promise<[IncomingMessage]>
  const client = await RawConnection.open(server)
  client.send(sent)
  const [request] = await announced
  return { client, request }
}

/** Settles with the body or the error, or with undefined if there is neither once the request has closed. */
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

const chunked = (body: string): string => {
  const chunk = body === '' ? '' : `${body.length.toString(16)}\r\n${body}\r\n`
  return `POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n${chunk}`
}

type Act = (client: RawConnection, request: IncomingMessage) => unknown

const none: Act = () => undefined
const leave: Act = (client) => client.socket.destroy()

async function leaveBefore(client: RawConnection, request: IncomingMessage): Promise<void> {
  await until(() => request.readableLength > 0)
  client.socket.destroy()
  await until(() => request.closed)
}

function goOn(rest: string): Act {
  return async (client, request) => {
    await once(request, 'data')
    client.send(rest)
  }
}

suite('a body', { timeout: 60_000 }, () => {
  const whole = '0123456789'
  const end = '0\r\n\r\n'
  const announced = (length: number): string => `POST / HTTP/1.1\r\nHost: a\r\nContent-Length: ${length}\r\n\r\n`
  const tooLong = chunked(`${whole}0`) + end
  for (const [name, sent, before, meanwhile, expected] of [
    ['is read if it has as many bytes as it may have', announced(10) + whole, none, none, whole],
    ['is read if it comes in pieces', chunked('01234'), none, goOn(`5\r\n56789\r\n${end}`), whole],
    ['is read if its client went when all of it was here', chunked(whole) + end, leaveBefore, none, whole],
    ['is refused as soon as its length is announced, if that is too much', announced(11), none, none, TOO_LARGE],
    ['is refused as soon as too much of it has come', chunked('012345'), none, goOn('5\r\n67890\r\n'), TOO_LARGE],
    ['is refused if its client went when too much was here', tooLong, leaveBefore, none, TOO_LARGE],
    ['is none if its client goes before it is complete', chunked('01234'), none, leave, undefined],
    ['is none if its client went before it was complete', chunked('01234'), leaveBefore, none, undefined],
  ] as const) {
    test(name, async (t) => {
      const { client, request } = await announce(t, sent)
      await before(client, request)
      const body = readBody(request, Number(request.headers['content-length'] ?? 0), LIMIT)
      void meanwhile(client, request)
      assert.deepEqual(await body, typeof expected === 'string' ? Buffer.from(expected) : expected)
    })
  }

  test('is none if its client goes before it is complete, in HTTP/2', async (t) => {
    let body: unknown
    const client = await serveIn(t, 'h2c', (request) => {
      body = readBody(request, 0, LIMIT)
    })
    const stream = client.open({ method: 'POST', path: '/', fields: [], body: '01234' }) as unknown as ClientHttp2Stream
    stream.on('error', () => undefined).write('0')
    await until(() => body !== undefined)
    stream.close(constants.NGHTTP2_CANCEL)
    assert.equal(await body, undefined)
  })

  test('is read in all its pieces if its client went while it flowed', async () => {
    const request = new PassThrough().resume()
    request.push('0')
    request.push('1')
    assert.deepEqual(await readBody(request.destroy() as unknown as IncomingMessage, 0, LIMIT), Buffer.from('01'))
  })

  test('is none if a request that a host makes up fails', async () => {
    const request = new PassThrough() as unknown as IncomingMessage
    const body = readBody(request, 0, LIMIT)
    request.destroy(new Error('made up'))
    assert.equal(await body, undefined)
  })
})

test(
  'is read although the tests of a host have replaced process.nextTick and queueMicrotask',
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
    await client.receive(/ok$/)
    client.socket.destroy()
  },
)

test('what was read of a body that is too large is not kept', { timeout: 60_000 }, async (t) => {
  const { client, request } = await announce(t, chunked(''))
  const bytes = 30_000_000
  const before = process.memoryUsage().arrayBuffers
  const body = readBody(request, 0, bytes)
  client.send(`${(bytes + 1).toString(16)}\r\n`).send(Buffer.alloc(bytes + 1))
  assert.ok((await body) instanceof HttpError)
  await until(() => {
    heapUsed()
    return client.socket.writableLength === 0 && process.memoryUsage().arrayBuffers - before < bytes / 2
  })
  client.socket.destroy()
})

test('a body in chunks of one byte takes no more than twice what a body may have', { timeout: 60_000 }, async (t) => {
  const requests: IncomingMessage[] = []
  const maxBytes = 65_536
  const server = await serve(t, (request) => requests.push(request))
  const whole = Buffer.from('a'.repeat(maxBytes - 1) + 'b')

  /** Sends bodies, and gives what each of them takes before its last byte. */
  async function sendBodies(count: number): Promise<number> {
    const clients = await Promise.all(Array.from({ length: count }, () => RawConnection.open(server)))
    for (const client of clients) client.send('POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n')
    await until(() => requests.length === count)
    const before = await memoryUsed()
    let chunks = 0
    const bodies = requests.splice(0).map(async (request) => {
      const body = readBody(request, 0, maxBytes)
      request.on('data', () => chunks++)
      return body
    })
    for (const client of clients) client.send('1\r\na\r\n'.repeat(maxBytes - 1))
    await until(() => chunks === count * (maxBytes - 1))
    const taken = ((await memoryUsed()) - before) / count
    for (const client of clients) client.send('1\r\nb\r\n0\r\n\r\n')
    assert.deepEqual(await Promise.all(bodies), Array<Buffer>(count).fill(whole))
    return taken
  }

  // What V8 keeps of the code that it compiles for the first one is no part of a body.
  await sendBodies(1)
  const taken = await sendBodies(8)
  assert.ok(taken < 2 * maxBytes, `each takes ${Math.round(taken)} bytes`)
})

test('the first byte of a body does not keep the memory of all that came with it', { timeout: 60_000 }, async () => {
  const request = new PassThrough()
  const body = readBody(request as unknown as IncomingMessage, 0, LIMIT)
  request.end(Buffer.alloc(LIMIT + 1, '1').subarray(LIMIT))
  const { buffer } = (await body) as Uint8Array
  assert.deepEqual([buffer.byteLength, Buffer.from(buffer).toString('latin1', 0, 1)], [2, '1'])
})

test('of a body that nobody wants 16 MiB are read, and no more', { timeout: 60_000 }, async (t) => {
  const bytes = 16 * 1024 * 1024
  const head = `POST / HTTP/1.1\r\nHost: a\r\nContent-Length: ${bytes + 2}\r\n\r\n`
  const { client, request } = await announce(t, head)
  discardBody(request, () => undefined)
  client.send(Buffer.alloc(bytes))
  await until(() => request.socket.bytesRead === head.length + bytes && request.readableLength === 0)
  const isPausedAtBound = request.isPaused()
  client.send('1')
  await until(() => request.isPaused())
  assert.equal(isPausedAtBound, false)
  client.socket.destroy()
})

suite('a body that nobody wants is done with once, and no timer is left,', { timeout: 60_000 }, () => {
  const end: Act = (client) => client.send('5')
  for (const [name, act] of Object.entries({ 'it ends': end, 'its client goes': leave, 'its time is over': none })) {
    test(`when ${name}`, async (t) => {
      const { client, request } = await announce(t, 'POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\n1234')
      let times = 0
      const timersBefore = countTimers()
      discardBody(request, () => times++)
      act(client, request)
      await until(() => times > 0)
      assert.equal(countTimers(), timersBefore)
      client.socket.destroy()
      await until(() => request.closed)
      assert.equal(times, 1)
    })
  }
})

test('a body that nobody wants is done with when it ends, in a host whose requests do not close', async () => {
  const request = new PassThrough({ autoDestroy: false })
  let times = 0
  discardBody(request as unknown as IncomingMessage, () => times++)
  request.end('12345')
  await once(request, 'end')
  assert.deepEqual([times, request.closed], [1, false])
})

for (const optimizeEmptyRequests of [false, true]) {
  test(`a request that announces no body has an empty one, with optimizeEmptyRequests: ${optimizeEmptyRequests}`, async (t) => {
    const server = await serve(t, createServer({ optimizeEmptyRequests }, createService()))
    const connection = await RawConnection.open(server)
    const fields = 'Host: a\r\nAuthorization: Bearer ada\r\nContent-Type: application/json\r\nConnection: close\r\n'
    connection.send(`POST /plants HTTP/1.1\r\n${fields}\r\n`)
    assert.match(await connection.closed, /^HTTP\/1\.1 400 [^]*"The body is empty: expected a value at byte 0\."}$/)
  })
}
