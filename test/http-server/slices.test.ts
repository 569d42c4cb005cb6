import assert from 'node:assert/strict'
import { createServer, type RequestListener, type ServerResponse } from 'node:http'
import { duplexPair, getDefaultHighWaterMark } from 'node:stream'
import { suite, test } from 'node:test'
import { setImmediate } from 'node:timers/promises'
import { inTurn } from '../../src/http/turn.ts'
import { inLaterRound } from '../../src/later-round.ts'
import { hold, type Connection } from '../../src/http-server/connections.ts'
import { readInSlices } from '../../src/http-server/slices.ts'
import { until } from '../support/until.ts'

/** Makes a connection whose input is handed on in slices. All that its client writes at once is here at once. */
function connect(listener: RequestListener) {
  const [client, socket] = duplexPair()
  const slices: string[] = []
  const requests: ServerResponse['req'][] = []
  const connection = { socket, requests: 0 } as unknown as Connection
  createServer((request, response) => {
    requests.push(request)
    hold(connection, response)
    listener(request, response)
  }).emit('connection', socket)
  readInSlices(connection)
  socket.on('data', (slice: Buffer) => slices.push(slice.toString('latin1')))
  client.resume()
  return { client, slices, requests }
}

const answer: RequestListener = (request, response) => inTurn({ request, response }, () => response.end())

const ignore: RequestListener = () => undefined

const GET = 'GET / HTTP/1.1\r\nHost: a\r\n\r\n'

function lengths(slices: readonly string[]): number[] {
  return slices.map(({ length }) => length)
}

suite('input is handed on', { timeout: 60_000 }, () => {
  test('in slices that become longer', async () => {
    const { client, slices, requests } = connect(answer)
    const sent = `GET / HTTP/1.1\r\nHost: a\r\nX: ${'x'.repeat(3000)}\r\n\r\n`
    client.write(sent)
    await until(() => requests.length === 1)
    assert.deepEqual(lengths(slices), [256, 512, 1024, 1024, sent.length - 2816])
    assert.equal(slices.join(''), sent)
  })

  test('in slices half as long after one that had more than a request, which become longer again', async () => {
    const { client, slices, requests } = connect(answer)
    client.write(GET.repeat(30))
    await until(() => requests.length === 30)
    const first = lengths(slices)
    assert.deepEqual(first.slice(0, 3), [256, 128, 64])
    assert.ok(
      first.slice(3).every((length) => (length >= 40 && length <= 80) || length === first.at(-1)),
      String(first),
    )
    const sent = `GET / HTTP/1.1\r\nHost: a\r\nX: ${'x'.repeat(700)}\r\n\r\n`
    client.write(sent)
    await until(() => requests.length === 31)
    const [one, two, ...others] = lengths(slices).slice(first.length)
    assert.ok(two === 2 * one!, [one, two, ...others].join())
  })

  test('but of a body whose length is known, all that has come', async () => {
    const { client, slices, requests } = connect(ignore)
    const post = `POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5000\r\n\r\n${'x'.repeat(5000)}`
    client.write(post.slice(0, -101))
    await until(() => slices.join('').length === post.length - 101)
    client.write('x')
    await until(() => slices.join('').length === post.length - 100)
    client.write(post.slice(-100) + GET.repeat(80))
    await until(() => requests.length === 81)
    const [first, body, byte, ...others] = lengths(slices)
    assert.deepEqual([first, body, byte], [256, post.length - 256 - 101, 1])
    assert.ok(Math.max(...others) <= 1024, String(others))
  })

  test('only as long as a body that nobody reads fits its buffer', async () => {
    const { client, slices, requests } = connect(ignore)
    const head = 'POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 200000\r\n\r\n'
    client.write(head)
    await until(() => requests.length === 1)
    const [request] = requests
    const fitting = request!.readableHighWaterMark
    for (let piece = 0; piece < 3; piece++) client.write('x'.repeat(fitting))
    await until(() => request!.readableLength >= fitting)
    for (let turn = 0; turn < 10; turn++) await setImmediate()
    assert.equal(request!.readableLength, fitting)
    request!.resume()
    await until(() => slices.join('').length === head.length + 3 * fitting)
  })

  test('behind a body that is whole, though nobody reads it', async () => {
    const { client, requests } = connect(ignore)
    const length = getDefaultHighWaterMark(false)
    const post = `POST / HTTP/1.1\r\nHost: a\r\nContent-Length: ${length}\r\n\r\n${'x'.repeat(length)}`
    client.write(`${post}GET / HTTP/1.1\r\nHost: a\r\nX: ${'x'.repeat(600)}\r\n\r\n`)
    await until(() => requests.length === 2)
  })

  const LONG = `GET / HTTP/1.1\r\nHost: a\r\nX: ${'x'.repeat(5000)}\r\n\r\n`
  const CHUNKS = `POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n${'1\r\nx\r\n'.repeat(800)}0\r\n\r\n`
  for (const [what, first, then, isFirst] of [
    ['of a connection that has sent one request after another, before what waits', GET, LONG, true],
    ['of a connection that has pipelined, behind it', GET.repeat(9), LONG, false],
    ['of a body in chunks, behind it', GET, CHUNKS, false],
    ['of a connection that has sent such a body, before it', CHUNKS, LONG, true],
  ] as const) {
    test(what, async () => {
      const { client, slices } = connect(answer)
      const length = (): number => slices.join('').length
      client.write(first)
      await until(() => length() === first.length)
      const isReadAtCall: boolean[] = []
      client.write(then)
      for (let call = 0; call < 50; call++) {
        inLaterRound(() => {
          isReadAtCall.push(length() === first.length + then.length)
          for (const end = performance.now() + 1; performance.now() < end;);
        })
      }
      await until(() => isReadAtCall.length === 50)
      assert.equal(isReadAtCall.includes(true), isFirst)
    })
  }
})
