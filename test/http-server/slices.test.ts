import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type RequestListener } from 'node:http'
import type { Socket } from 'node:net'
import { duplexPair, getDefaultHighWaterMark, type Duplex } from 'node:stream'
import { suite, test } from 'node:test'
import { setImmediate } from 'node:timers/promises'
import { inTurn } from '../../src/http/turn.ts'
import { readInSlices } from '../../src/http-server/slices.ts'
import { until } from '../support/until.ts'

interface Sliced {
  /** What a client has of the connection. All that it writes at once is here at once. */
  readonly client: Duplex
  readonly socket: Duplex
  /** What was handed on so far. */
  readonly slices: readonly string[]
  readonly requests: readonly IncomingMessage[]
}

/** Makes a connection whose input is handed on in slices. */
function connect(listener: RequestListener): Sliced {
  const [client, socket] = duplexPair()
  const slices: string[] = []
  const requests: IncomingMessage[] = []
  createServer((request, response) => {
    requests.push(request)
    listener(request, response)
  }).emit('connection', socket)
  readInSlices(socket as unknown as Socket, () => requests.at(-1))
  socket.on('data', (slice: Buffer) => slices.push(slice.toString('latin1')))
  client.resume()
  return { client, socket, slices, requests }
}

const answer: RequestListener = (request, response) => inTurn(request, response, () => response.end())

const ignore: RequestListener = () => undefined

const GET = 'GET / HTTP/1.1\r\nHost: a\r\n\r\n'

function lengths(slices: readonly string[]): number[] {
  return slices.map(({ length }) => length)
}

suite('input is handed on', { timeout: 10_000 }, () => {
  test('in slices of 256 bytes', async () => {
    const { client, slices, requests } = connect(answer)
    const sent = `GET / HTTP/1.1\r\nHost: a\r\nX: ${'x'.repeat(600)}\r\n\r\n`
    client.write(sent)
    await until(() => requests.length === 1)
    assert.deepEqual(lengths(slices), [256, 256, sent.length - 512])
    assert.equal(slices.join(''), sent)
  })

  test('in slices of 40 bytes, once a request has waited for its turn', async () => {
    const { client, slices, requests } = connect(answer)
    client.write(GET.repeat(2))
    await until(() => requests.length === 2)
    const sent = `GET / HTTP/1.1\r\nHost: a\r\nX: ${'x'.repeat(50)}\r\n\r\n`
    client.write(sent)
    await until(() => requests.length === 3)
    assert.deepEqual(lengths(slices), [2 * GET.length, 40, 40, sent.length - 80])
  })

  test('only once no request waits for its turn any more', async () => {
    const ends: (() => void)[] = []
    const { client, slices, requests } = connect((request, response) =>
      inTurn(request, response, () => ends.push(() => response.end())),
    )
    const count = Math.ceil(512 / GET.length)
    client.write(GET.repeat(count))
    for (let turn = 0; turn < 5; turn++) await setImmediate()
    assert.deepEqual(lengths(slices), [256])
    const first = Math.floor(256 / GET.length)
    assert.equal(requests.length, first)
    for (let ended = 0; ended < first; ended++) {
      assert.equal(slices.length, 1)
      await until(() => ends.length > ended)
      ends[ended]!()
    }
    await until(() => slices.length > 1)
    await until(() => {
      ends.at(-1)!()
      return ends.length === count
    })
    assert.equal(slices.join(''), GET.repeat(count))
  })

  test('of a body too', async () => {
    const { client, slices, requests } = connect(ignore)
    const head = 'POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2000\r\n\r\n'
    client.write(head + 'x'.repeat(1280))
    await until(() => slices.length === 6)
    assert.equal(requests.length, 1)
    assert.deepEqual(lengths(slices), [256, 256, 256, 256, 256, head.length])
  })

  test('only as long as a body that nobody reads fits its buffer', async () => {
    const { client, slices, requests } = connect(ignore)
    const head = 'POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 200000\r\n\r\n'
    client.write(head)
    await until(() => requests.length === 1)
    const [request] = requests
    const fitting = request!.readableHighWaterMark
    client.write('x'.repeat(2 * fitting))
    await until(() => request!.readableLength >= fitting)
    for (let turn = 0; turn < 5; turn++) await setImmediate()
    assert.ok(request!.readableLength < fitting + 256, `${request!.readableLength} bytes`)
    request!.resume()
    await until(() => slices.join('').length === head.length + 2 * fitting)
  })

  test('behind a body that is whole, though nobody reads it', async () => {
    const { client, requests } = connect(ignore)
    const length = getDefaultHighWaterMark(false)
    const post = `POST / HTTP/1.1\r\nHost: a\r\nContent-Length: ${length}\r\n\r\n${'x'.repeat(length)}`
    client.write(`${post}GET / HTTP/1.1\r\nHost: a\r\nX: ${'x'.repeat(600)}\r\n\r\n`)
    await until(() => requests.length === 2)
  })

  test('to its end', async () => {
    const { client, socket, requests } = connect(answer)
    client.write(GET)
    await until(() => requests.length === 1)
    client.end()
    await once(socket, 'end')
  })
})
