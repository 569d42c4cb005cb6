import assert from 'node:assert/strict'
import { once } from 'node:events'
import { IncomingMessage, ServerResponse } from 'node:http'
import { constants, type ClientHttp2Stream, type IncomingHttpHeaders, type ServerHttp2Stream } from 'node:http2'
import { PassThrough } from 'node:stream'
import { suite, test } from 'node:test'
import { respond, type HttpResponse } from '../../src/http/respond.ts'
import { streamOf } from '../../src/http/transport.ts'
import { encodeUtf8 } from '../../src/plants/text.ts'
import { until } from '../support/until.ts'
import { serveIn } from '../support/wire/client.ts'
import { RawConnection } from '../support/wire/raw-connection.ts'
import { serve, type Request } from '../support/wire/service.ts'

const TEXT = 'Żaba 🐸'
const TEXT_BYTES = 10

const WHOLE: HttpResponse = {
  status: 200,
  headers: ['X-Kind', 'frog', 'X-Legs', '4'],
  contentType: 'text/plain',
  body: encodeUtf8(TEXT),
}
const EMPTY: HttpResponse = { ...WHOLE, status: 204, body: undefined }
const FAULT = new Error('disk')

async function* pieces(fault?: Error): AsyncGenerator<string> {
  yield encodeUtf8(TEXT)
  await Promise.resolve()
  if (fault !== undefined) throw fault
  yield encodeUtf8(TEXT)
}

/** A response that can be sent once. */
function inPieces(fault?: Error): HttpResponse {
  return { ...WHOLE, body: pieces(fault) }
}

async function* long(): AsyncGenerator<string> {
  for (;;) yield await Promise.resolve('x'.repeat(100_000))
}

const FIELDS = { 'x-kind': 'frog', 'x-legs': '4', 'cache-control': 'no-store' }
const LENGTH = { 'content-length': String(TEXT_BYTES) }
const GET: Request = { method: 'GET', path: '/', fields: [] }
const HEAD = { ...GET, method: 'HEAD' }

for (const protocol of ['http', 'h2c'] as const) {
  suite(`a response in ${protocol}`, { timeout: 60_000 }, () => {
    for (const [name, request, answer, headers, body] of [
      ['whole', GET, WHOLE, { ...FIELDS, 'content-type': 'text/plain', ...LENGTH }, TEXT],
      ['whole, to HEAD', HEAD, WHOLE, { ...FIELDS, 'content-type': 'text/plain', ...LENGTH }, ''],
      ['empty', GET, EMPTY, FIELDS, ''],
      ['in pieces', GET, inPieces(), { ...FIELDS, 'content-type': 'text/plain' }, TEXT + TEXT],
      ['in pieces, to HEAD', HEAD, inPieces(), { ...FIELDS, 'content-type': 'text/plain' }, ''],
    ] as const) {
      test(`is sent, and how much of its body: ${name}`, async (t) => {
        let sent: unknown
        const client = await serveIn(t, protocol, (request, response) => {
          const sending = respond(request, response, answer)
          const readers = request.listenerCount('data')
          void Promise.resolve(sending).then((said) => {
            sent = { ...said, isEnded: response.writableEnded, readers }
          })
        })

        const received = await client.send(request)

        await until(() => sent !== undefined)
        assert.deepEqual(received, { status: answer.status, headers, body })
        assert.deepEqual(sent, { bytes: Buffer.byteLength(body), complete: true, isEnded: true, readers: 0 })
      })
    }

    for (const what of ['begun', 'ended']) {
      test(`gives way to one that the host has ${what}`, async (t) => {
        let sent: unknown
        const client = await serveIn(t, protocol, (request, response) => {
          response.writeHead(202)
          if (what === 'begun') response.write('the host')
          else response.end('the host')
          sent = respond(request, response, WHOLE)
          response.end()
        })
        const { status, body } = await client.send(GET)
        assert.deepEqual([status, body], [202, 'the host'])
        assert.deepEqual(sent, { bytes: 0, complete: false })
      })
    }
  })
}

suite('a connection', { timeout: 60_000 }, () => {
  const keepAlive = 'Connection: keep-alive\r\n'
  const upgrade = 'Connection: Upgrade\r\nUpgrade: h2c\r\n'
  const chunks = 'POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n'
  for (const [name, status, head, expected] of [
    ['after a request of HTTP/1.1', 200, 'GET / HTTP/1.1\r\n', 'keep-alive'],
    ['after fields as long as those that close it', 200, 'GET / HTTP/1.1\r\nReferer: a\r\n', 'keep-alive'],
    ['after chunks', 200, `${chunks}\r\n0\r\n`, 'keep-alive'],
    ['after a request of HTTP/1.0', 200, `GET / HTTP/1.0\r\n${keepAlive}If-Modified-Since: a\r\n`, 'keep-alive'],
    ['after chunks of HTTP/1.0', 200, `GET / HTTP/1.0\r\n${keepAlive}transfer-encoding: chunked\r\n\r\n0\r\n`, 'close'],
    ['after chunks in another coding', 200, 'GET / HTTP/1.1\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n', 'close'],
    ['after a request for another protocol', 200, `GET / HTTP/1.1\r\n${upgrade}`, 'close'],
    ['after success whose body is awaited', 200, 'POST / HTTP/1.1\r\nContent-Length: 5\r\n', 'keep-alive'],
    ['after a refusal whose body is awaited', 400, 'POST / HTTP/1.1\r\nContent-Length: 5\r\n', 'close'],
    ['after a refusal whose chunks are awaited', 400, chunks, 'close'],
    ['after a refusal whose body is here', 400, 'POST / HTTP/1.1\r\nContent-Length: 1\r\n\r\n1', 'keep-alive'],
    ['after a refusal whose chunks are here', 400, `${chunks}\r\n1\r\n1\r\n0\r\n\r\n`, 'keep-alive'],
  ] as const) {
    test(`${expected === 'close' ? 'closes' : 'is kept'} ${name}`, async (t) => {
      const server = await serve(t, (request, response) => void respond(request, response, { ...WHOLE, status }))
      const connection = await RawConnection.open(server)
      connection.send(head.replace('\r\n', '\r\nHost: a\r\n') + '\r\n')
      const [answer] = await connection.answers(1)
      assert.deepEqual([answer!.status, answer!.headers.get('connection')], [status, expected])
      connection.socket.destroy()
    })
  }
})

function refuse(request: IncomingMessage, response: ServerResponse): void {
  void respond(request, response, { ...WHOLE, status: 400 })
}

for (const [name, status, request] of [
  ['a refusal of a request without a body', 400, GET],
  ['a success whose request has a body', 200, { ...GET, method: 'POST', body: 'ribbit' }],
] as const) {
  test(`${name} is handed over at once`, async (t) => {
    let sent: unknown
    const client = await serveIn(t, 'http', (request, response) => {
      sent = respond(request, response, { ...WHOLE, status })
    })
    await client.send(request)
    assert.deepEqual(sent, { bytes: TEXT_BYTES, complete: true })
  })
}

suite('a refusal whose body is awaited', { timeout: 60_000 }, () => {
  for (const method of ['POST', 'HEAD']) {
    test(`to ${method} goes out at once, and ends when the body does`, async (t) => {
      let response: ServerResponse | undefined
      let isFlushed = false
      const server = await serve(t, (request, accepted) => {
        // As what compresses a response has it.
        response = Object.assign(accepted, { flush: () => (isFlushed = true) })
        refuse(request, response)
      })
      const connection = await RawConnection.open(server)
      connection.send(`${method} / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\n`)
      await connection.receive(method === 'HEAD' ? /\r\n\r\n$/ : /\r\n\r\n[^]{10}$/)
      assert.deepEqual([response!.writableEnded, isFlushed], [false, method === 'POST'])
      connection.send('12345')
      await connection.closed
      assert.equal(response!.writableEnded, true)
    })

    test(`to ${method} in HTTP/2 is whole at once, and the stream closes when the body ends`, async (t) => {
      let response: ServerResponse | undefined
      const client = await serveIn(t, 'h2c', (request, accepted) => refuse(request, (response = accepted)))
      const stream = client.open({ ...GET, method, body: '12345' }) as unknown as ClientHttp2Stream
      stream.write('1234')
      const [headers] = (await once(stream, 'response')) as [IncomingHttpHeaders]
      assert.deepEqual([headers[':status'], response!.writableEnded], [400, true])
      await once(stream.resume(), 'end')
      assert.equal(stream.closed, false)
      await once(stream.end('5'), 'close')
      assert.equal(stream.rstCode, constants.NGHTTP2_NO_ERROR)
    })
  }

  test('in HTTP/2 is not cut if what wraps it ends it long after the body', async (t) => {
    const client = await serveIn(t, 'h2c', (request, response) => {
      const end = response.end.bind(response) as (body: string) => unknown
      // Longer than a body is awaited that does not end.
      const endLater = (body: string): unknown => request.on('end', () => setTimeout(() => end(body), 2100))
      refuse(request, Object.assign(response, { end: endLater }))
    })
    const { status, body } = await client.send({ ...GET, method: 'POST', body: 'ribbit' })
    assert.deepEqual([status, body], [400, TEXT])
  })
})

suite('a stream that its client resets without an error is given up, with all that it has to send', () => {
  const whole = { ...WHOLE, body: 'x'.repeat(10_000_000) }
  for (const [name, request, answer] of [
    ['a whole response', GET, whole],
    ['one in pieces', GET, { ...WHOLE, body: long() }],
    ['one in pieces, to a request whose body nobody reads', { ...GET, body: 'ribbit' }, { ...WHOLE, body: long() }],
  ] as const) {
    test(name, { timeout: 60_000 }, async (t) => {
      let accepted: ServerHttp2Stream | undefined
      const client = await serveIn(t, 'h2c', (request, response) => {
        accepted = streamOf(response)
        void respond(request, response, answer)
      })
      const stream = client.open(request) as unknown as ClientHttp2Stream
      await once(stream.end(request.body), 'response')
      stream.close()
      await until(() => accepted!.destroyed)
    })
  }
})

suite('a response that fails in its midst', { timeout: 60_000 }, () => {
  test('destroys its stream in HTTP/2, and says why', async (t) => {
    let reason: Error | undefined
    const client = await serveIn(t, 'h2c', (request, response) => {
      streamOf(response)!.on('error', (error) => (reason = error))
      void respond(request, response, inPieces(FAULT))
    })
    await assert.rejects(client.send(GET))
    await until(() => reason !== undefined)
    assert.equal(reason!.message, 'The response could not be sent to its end')
  })

  test('resets no connection of HTTP/1.1, which may hold whole responses before it', async (t) => {
    const server = await serve(t, (request, response) => void respond(request, response, inPieces(FAULT)))
    const connection = await RawConnection.open(server)
    assert.doesNotMatch(await connection.send('GET / HTTP/1.1\r\nHost: a\r\n\r\n').closed, /<ECONNRESET>$/)
  })

  test('as its end throws once the body that it awaits is there, ends its connection', async (t) => {
    const server = await serve(t, (request, response) => {
      response.end = () => assert.fail(FAULT)
      refuse(request, response)
    })
    const connection = await RawConnection.open(server)
    connection.send('POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\n')
    await connection.receive(/^HTTP/)
    await connection.send('12345').closed
  })

  test('is destroyed if it has no connection', async () => {
    const request = new IncomingMessage(undefined as never)
    const response = new ServerResponse(request)
    const { failure } = await respond(request, response, inPieces(FAULT))
    assert.deepEqual(failure, { thrown: FAULT })
    assert.ok(response.destroyed)
  })
})

for (const socket of [null, undefined]) {
  test(`destroys a truncated response whose socket is ${socket}`, async () => {
    const request = new IncomingMessage(undefined as never)
    const response = Object.defineProperty(new ServerResponse(request), 'socket', { value: socket })
    const { failure } = await respond(request, response, inPieces(FAULT))
    assert.deepEqual([failure, response.destroyed], [{ thrown: FAULT }, true])
  })
}

test('counts only the pieces whose write has returned', async () => {
  const request = new IncomingMessage(undefined as never)
  const response = new ServerResponse(request)
  let writes = 0
  response.write = () => {
    if (++writes === 2) throw FAULT
    return true
  }
  const sent = await respond(request, response, inPieces())
  assert.deepEqual(sent, { bytes: TEXT_BYTES, complete: false, failure: { thrown: FAULT } })
})

test('a response without a connection is sent whole', async () => {
  const request = new IncomingMessage(null as never)
  const response = new ServerResponse(request)
  response.assignSocket(new PassThrough().resume() as never)
  assert.deepEqual(await respond(request, response, inPieces()), { bytes: 2 * TEXT_BYTES, complete: true })
})
