import assert from 'node:assert/strict'
import { createServer, type RequestListener, type ServerResponse } from 'node:http'
import { duplexPair, getDefaultHighWaterMark } from 'node:stream'
import { suite, test } from 'node:test'
import { setImmediate } from 'node:timers/promises'
import { runInOrder } from '../../src/http/request-queue.ts'
import { scheduleTask } from '../../src/scheduler.ts'
import { trackResponse, type Connection } from '../../src/http-server/connections.ts'
import { throttleReads } from '../../src/http-server/read-throttle.ts'
import { waitUntil } from '../support/wait-until.ts'

/** Creates a connection with throttled reads. Everything that the client writes arrives immediately. */
function connectThrottled(listener: RequestListener) {
  const [client, socket] = duplexPair()
  const slices: string[] = []
  const requests: ServerResponse['req'][] = []
  const connection = { socket, requestCount: 0 } as unknown as Connection
  createServer((request, response) => {
    requests.push(request)
    trackResponse(connection, response)
    listener(request, response)
  }).emit('connection', socket)
  throttleReads(connection)
  socket.on('data', (slice: Buffer) => slices.push(slice.toString('latin1')))
  client.resume()
  return { client, slices, requests }
}

const respondInOrder: RequestListener = (request, response) => runInOrder({ request, response }, () => response.end())

const neverRespond: RequestListener = () => undefined

const GET = 'GET / HTTP/1.1\r\nHost: a\r\n\r\n'

function getLengths(slices: readonly string[]): number[] {
  return slices.map(({ length }) => length)
}

suite('throttled reads', { timeout: 60_000 }, () => {
  test('throttled reads deliver data in slices of growing size', async () => {
    const { client, slices, requests } = connectThrottled(respondInOrder)
    const sent = `GET / HTTP/1.1\r\nHost: a\r\nX: ${'x'.repeat(3000)}\r\n\r\n`
    client.write(sent)
    await waitUntil(() => requests.length === 1)
    assert.deepEqual(getLengths(slices), [256, 512, 1024, 1024, sent.length - 2816])
    assert.equal(slices.join(''), sent)
  })

  test('throttled reads use smaller slices after a slice with several requests', async () => {
    const { client, slices, requests } = connectThrottled(respondInOrder)
    client.write(GET.repeat(30))
    await waitUntil(() => requests.length === 30)
    const first = getLengths(slices)
    assert.deepEqual(first.slice(0, 3), [256, 128, 64])
    assert.ok(
      first.slice(3).every((length) => (length >= 40 && length <= 80) || length === first.at(-1)),
      String(first),
    )
    const sent = `GET / HTTP/1.1\r\nHost: a\r\nX: ${'x'.repeat(700)}\r\n\r\n`
    client.write(sent)
    await waitUntil(() => requests.length === 31)
    const [one, two, ...others] = getLengths(slices).slice(first.length)
    assert.ok(two === 2 * one!, [one, two, ...others].join())
  })

  test('throttled reads deliver the buffered part of a body with Content-Length in one slice', async () => {
    const { client, slices, requests } = connectThrottled(neverRespond)
    const post = `POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5000\r\n\r\n${'x'.repeat(5000)}`
    client.write(post.slice(0, -101))
    await waitUntil(() => slices.join('').length === post.length - 101)
    client.write('x')
    await waitUntil(() => slices.join('').length === post.length - 100)
    client.write(post.slice(-100) + GET.repeat(80))
    await waitUntil(() => requests.length === 81)
    const [first, body, byte, ...others] = getLengths(slices)
    assert.deepEqual([first, body, byte], [256, post.length - 256 - 101, 1])
    assert.ok(Math.max(...others) <= 1024, String(others))
  })

  test('throttled reads stop while the buffer of an unread body is full', async () => {
    const { client, slices, requests } = connectThrottled(neverRespond)
    const head = 'POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 200000\r\n\r\n'
    client.write(head)
    await waitUntil(() => requests.length === 1)
    const [request] = requests
    const fitting = request!.readableHighWaterMark
    for (let piece = 0; piece < 3; piece++) client.write('x'.repeat(fitting))
    await waitUntil(() => request!.readableLength >= fitting)
    for (let turn = 0; turn < 10; turn++) await setImmediate()
    assert.equal(request!.readableLength, fitting)
    request!.resume()
    await waitUntil(() => slices.join('').length === head.length + 3 * fitting)
  })

  test('the server keeps reading from a throttled connection even if a listener leaves a complete body unread', async () => {
    const { client, requests } = connectThrottled(neverRespond)
    const length = getDefaultHighWaterMark(false)
    const post = `POST / HTTP/1.1\r\nHost: a\r\nContent-Length: ${length}\r\n\r\n${'x'.repeat(length)}`
    client.write(`${post}GET / HTTP/1.1\r\nHost: a\r\nX: ${'x'.repeat(600)}\r\n\r\n`)
    await waitUntil(() => requests.length === 2)
  })

  const LONG = `GET / HTTP/1.1\r\nHost: a\r\nX: ${'x'.repeat(5000)}\r\n\r\n`
  const CHUNKS = `POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n${'1\r\nx\r\n'.repeat(800)}0\r\n\r\n`
  for (const [what, first, then, isUrgent] of [
    ['have priority over scheduled tasks on a connection that has never pipelined', GET, LONG, true],
    ['wait for scheduled tasks on a connection that has pipelined', GET.repeat(9), LONG, false],
    ['wait for scheduled tasks while a chunked body arrives', GET, CHUNKS, false],
    ['have priority over scheduled tasks after a chunked body is complete', CHUNKS, LONG, true],
  ] as const) {
    test(what, async () => {
      const { client, slices } = connectThrottled(respondInOrder)
      const length = (): number => slices.join('').length
      client.write(first)
      await waitUntil(() => length() === first.length)
      const isReadAtCall: boolean[] = []
      client.write(then)
      for (let call = 0; call < 50; call++) {
        scheduleTask(() => {
          isReadAtCall.push(length() === first.length + then.length)
          for (const end = performance.now() + 1; performance.now() < end;);
        })
      }
      await waitUntil(() => isReadAtCall.length === 50)
      assert.equal(isReadAtCall.includes(true), isUrgent)
    })
  }
})
