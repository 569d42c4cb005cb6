import assert from 'node:assert/strict'
import { once } from 'node:events'
import { IncomingMessage, ServerResponse } from 'node:http'
import { constants, type ClientHttp2Stream, type IncomingHttpHeaders, type ServerHttp2Stream } from 'node:http2'
import { PassThrough } from 'node:stream'
import { suite, test } from 'node:test'
import { respond, type HttpResponse } from '../../src/http/respond.ts'
import { streamOf } from '../../src/http/transport.ts'
import { encodeUtf8 } from '../../src/plants/text.ts'
import { waitUntil } from '../support/wait-until.ts'
import { serveAndConnect } from '../support/wire/client.ts'
import { RawConnection } from '../support/wire/raw-connection.ts'
import { serve, type TestRequest } from '../support/wire/service.ts'

const TEXT = 'Żaba 🐸'
const TEXT_BYTES = 10

const TEXT_RESPONSE: HttpResponse = {
  status: 200,
  headers: ['X-Kind', 'frog', 'X-Legs', '4'],
  contentType: 'text/plain',
  error: undefined,
  allowsCaching: false,
  body: encodeUtf8(TEXT),
}
const EMPTY_RESPONSE: HttpResponse = { ...TEXT_RESPONSE, status: 204, body: undefined }
const FAULT = new Error('disk')

async function* streamText(fault?: Error): AsyncGenerator<string> {
  yield encodeUtf8(TEXT)
  await Promise.resolve()
  if (fault !== undefined) throw fault
  yield encodeUtf8(TEXT)
}

/** A response whose body can be iterated only once. */
function createStreamedResponse(fault?: Error): HttpResponse {
  return { ...TEXT_RESPONSE, body: streamText(fault) }
}

async function* streamForever(): AsyncGenerator<string> {
  for (;;) yield await Promise.resolve('x'.repeat(100_000))
}

const FIELDS = { 'x-kind': 'frog', 'x-legs': '4', 'cache-control': 'no-store' }
const LENGTH = { 'content-length': String(TEXT_BYTES) }
const GET: TestRequest = { method: 'GET', path: '/', fields: [] }
const HEAD = { ...GET, method: 'HEAD' }

for (const protocol of ['http', 'h2c'] as const) {
  suite(`a response in ${protocol}`, { timeout: 60_000 }, () => {
    for (const [name, request, answer, headers, body] of [
      ['a complete body', GET, TEXT_RESPONSE, { ...FIELDS, 'content-type': 'text/plain', ...LENGTH }, TEXT],
      ['a complete body for HEAD', HEAD, TEXT_RESPONSE, { ...FIELDS, 'content-type': 'text/plain', ...LENGTH }, ''],
      ['no body', GET, EMPTY_RESPONSE, FIELDS, ''],
      ['a streamed body', GET, createStreamedResponse(), { ...FIELDS, 'content-type': 'text/plain' }, TEXT + TEXT],
      ['a streamed body for HEAD', HEAD, createStreamedResponse(), { ...FIELDS, 'content-type': 'text/plain' }, ''],
    ] as const) {
      test(`with ${name} is sent completely, and respond returns the number of bytes`, async (t) => {
        let sent: unknown
        const client = await serveAndConnect(t, protocol, (request, response) => {
          const sending = respond(request, response, answer)
          const readers = request.listenerCount('data')
          void Promise.resolve(sending).then((said) => {
            sent = { ...said, isEnded: response.writableEnded, readers }
          })
        })

        const received = await client.send(request)

        await waitUntil(() => sent !== undefined)
        assert.deepEqual(received, { status: answer.status, headers, body })
        assert.deepEqual(sent, {
          bytes: Buffer.byteLength(body),
          complete: true,
          failure: undefined,
          isEnded: true,
          readers: 0,
        })
      })
    }

    for (const what of ['started', 'ended']) {
      test(`is not sent if the host has already ${what} a response`, async (t) => {
        let sent: unknown
        const client = await serveAndConnect(t, protocol, (request, response) => {
          response.writeHead(202)
          if (what === 'started') response.write('the host')
          else response.end('the host')
          sent = respond(request, response, TEXT_RESPONSE)
          response.end()
        })
        const { status, body } = await client.send(GET)
        assert.deepEqual([status, body], [202, 'the host'])
        assert.deepEqual(sent, { bytes: 0, complete: false, failure: undefined })
      })
    }
  })
}

suite('an HTTP/1 connection', { timeout: 60_000 }, () => {
  const keepAlive = 'Connection: keep-alive\r\n'
  const upgrade = 'Connection: Upgrade\r\nUpgrade: h2c\r\n'
  const chunks = 'POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n'
  for (const [name, status, head, expected] of [
    ['after an HTTP/1.1 request', 200, 'GET / HTTP/1.1\r\n', 'keep-alive'],
    ['after a header field whose name is as long as "Upgrade"', 200, 'GET / HTTP/1.1\r\nReferer: a\r\n', 'keep-alive'],
    ['after a chunked body', 200, `${chunks}\r\n0\r\n`, 'keep-alive'],
    ['after an HTTP/1.0 request', 200, `GET / HTTP/1.0\r\n${keepAlive}If-Modified-Since: a\r\n`, 'keep-alive'],
    [
      'after a chunked HTTP/1.0 body',
      200,
      `GET / HTTP/1.0\r\n${keepAlive}transfer-encoding: chunked\r\n\r\n0\r\n`,
      'close',
    ],
    [
      'after a body with another transfer coding',
      200,
      'GET / HTTP/1.1\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n',
      'close',
    ],
    ['after an upgrade request', 200, `GET / HTTP/1.1\r\n${upgrade}`, 'close'],
    [
      'after a success response while the request body is incomplete',
      200,
      'POST / HTTP/1.1\r\nContent-Length: 5\r\n',
      'keep-alive',
    ],
    [
      'after an error response while the request body is incomplete',
      400,
      'POST / HTTP/1.1\r\nContent-Length: 5\r\n',
      'close',
    ],
    ['after an error response while the chunked request body is incomplete', 400, chunks, 'close'],
    [
      'after an error response if the request body is complete',
      400,
      'POST / HTTP/1.1\r\nContent-Length: 1\r\n\r\n1',
      'keep-alive',
    ],
    [
      'after an error response if the chunked request body is complete',
      400,
      `${chunks}\r\n1\r\n1\r\n0\r\n\r\n`,
      'keep-alive',
    ],
  ] as const) {
    test(`is ${expected === 'close' ? 'closed' : 'kept alive'} ${name}`, async (t) => {
      const server = await serve(
        t,
        (request, response) => void respond(request, response, { ...TEXT_RESPONSE, status }),
      )
      const connection = await RawConnection.open(server)
      connection.send(head.replace('\r\n', '\r\nHost: a\r\n') + '\r\n')
      const [answer] = await connection.readResponses(1)
      assert.deepEqual([answer!.status, answer!.headers.get('connection')], [status, expected])
      connection.socket.destroy()
    })
  }
})

function respondBadRequest(request: IncomingMessage, response: ServerResponse): void {
  void respond(request, response, { ...TEXT_RESPONSE, status: 400 })
}

for (const [name, status, request] of [
  ['an error response to a request without a body', 400, GET],
  ['a success response to a request with a body', 200, { ...GET, method: 'POST', body: 'ribbit' }],
] as const) {
  test(`respond sends ${name} synchronously`, async (t) => {
    let sent: unknown
    const client = await serveAndConnect(t, 'http', (request, response) => {
      sent = respond(request, response, { ...TEXT_RESPONSE, status })
    })
    await client.send(request)
    assert.deepEqual(sent, { bytes: TEXT_BYTES, complete: true, failure: undefined })
  })
}

suite('an error response while the request body is incomplete', { timeout: 60_000 }, () => {
  for (const method of ['POST', 'HEAD']) {
    test(`to ${method} is flushed immediately and ends when the request body ends`, async (t) => {
      let response: ServerResponse | undefined
      let isFlushed = false
      const server = await serve(t, (request, accepted) => {
        // Compression middleware adds this method.
        response = Object.assign(accepted, { flush: () => (isFlushed = true) })
        respondBadRequest(request, response)
      })
      const connection = await RawConnection.open(server)
      connection.send(`${method} / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\n`)
      await connection.waitFor(method === 'HEAD' ? /\r\n\r\n$/ : /\r\n\r\n[^]{10}$/)
      assert.deepEqual([response!.writableEnded, isFlushed], [false, method === 'POST'])
      connection.send('12345')
      await connection.closed
      assert.equal(response!.writableEnded, true)
    })

    test(`to ${method} in HTTP/2 ends immediately, but the stream closes only when the request body ends`, async (t) => {
      let response: ServerResponse | undefined
      const client = await serveAndConnect(t, 'h2c', (request, accepted) =>
        respondBadRequest(request, (response = accepted)),
      )
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

  test('an HTTP/2 error response is not truncated if middleware delays the end of the response', async (t) => {
    const client = await serveAndConnect(t, 'h2c', (request, response) => {
      const end = response.end.bind(response) as (body: string) => unknown
      // Longer than the service waits for an incomplete body.
      const endLater = (body: string): unknown => request.on('end', () => setTimeout(() => end(body), 2100))
      respondBadRequest(request, Object.assign(response, { end: endLater }))
    })
    const { status, body } = await client.send({ ...GET, method: 'POST', body: 'ribbit' })
    assert.deepEqual([status, body], [400, TEXT])
  })
})

suite('an HTTP/2 stream is destroyed if the client closes it during a response', () => {
  const whole = { ...TEXT_RESPONSE, body: 'x'.repeat(10_000_000) }
  for (const [name, request, answer] of [
    ['with a complete body', GET, whole],
    ['with a streamed body', GET, { ...TEXT_RESPONSE, body: streamForever() }],
    [
      'with a streamed body, while the request body is unread',
      { ...GET, body: 'ribbit' },
      { ...TEXT_RESPONSE, body: streamForever() },
    ],
  ] as const) {
    test(name, { timeout: 60_000 }, async (t) => {
      let accepted: ServerHttp2Stream | undefined
      const client = await serveAndConnect(t, 'h2c', (request, response) => {
        accepted = streamOf(response)
        void respond(request, response, answer)
      })
      const stream = client.open(request) as unknown as ClientHttp2Stream
      await once(stream.end(request.body), 'response')
      stream.close()
      await waitUntil(() => accepted!.destroyed)
    })
  }
})

suite('failed responses', { timeout: 60_000 }, () => {
  test('a failed response destroys its HTTP/2 stream with an error', async (t) => {
    let reason: Error | undefined
    const client = await serveAndConnect(t, 'h2c', (request, response) => {
      streamOf(response)!.on('error', (error) => (reason = error))
      void respond(request, response, createStreamedResponse(FAULT))
    })
    await assert.rejects(client.send(GET))
    await waitUntil(() => reason !== undefined)
    assert.equal(reason!.message, 'The response was aborted before it was complete')
  })

  // A reset could discard earlier responses.
  test('a failed response closes its HTTP/1.1 connection without a reset', async (t) => {
    const server = await serve(t, (request, response) => void respond(request, response, createStreamedResponse(FAULT)))
    const connection = await RawConnection.open(server)
    assert.doesNotMatch(await connection.send('GET / HTTP/1.1\r\nHost: a\r\n\r\n').closed, /<ECONNRESET>$/)
  })

  test('the connection is closed if response.end throws after the request body has arrived', async (t) => {
    const server = await serve(t, (request, response) => {
      response.end = () => assert.fail(FAULT)
      respondBadRequest(request, response)
    })
    const connection = await RawConnection.open(server)
    connection.send('POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\n')
    await connection.waitFor(/^HTTP/)
    await connection.send('12345').closed
  })

  test('a failed response without a socket is destroyed', async () => {
    const request = new IncomingMessage(undefined as never)
    const response = new ServerResponse(request)
    const { failure } = await respond(request, response, createStreamedResponse(FAULT))
    assert.deepEqual(failure, { error: FAULT })
    assert.ok(response.destroyed)
  })
})

for (const socket of [null, undefined]) {
  test(`respond destroys a truncated response whose socket is ${socket}`, async () => {
    const request = new IncomingMessage(undefined as never)
    const response = Object.defineProperty(new ServerResponse(request), 'socket', { value: socket })
    const { failure } = await respond(request, response, createStreamedResponse(FAULT))
    assert.deepEqual([failure, response.destroyed], [{ error: FAULT }, true])
  })
}

test('respond counts only bytes that were written successfully', async () => {
  const request = new IncomingMessage(undefined as never)
  const response = new ServerResponse(request)
  let writes = 0
  response.write = () => {
    if (++writes === 2) throw FAULT
    return true
  }
  const sent = await respond(request, response, createStreamedResponse())
  assert.deepEqual(sent, { bytes: TEXT_BYTES, complete: false, failure: { error: FAULT } })
})

test('respond sends a complete response even if the request has no connection', async () => {
  const request = new IncomingMessage(null as never)
  const response = new ServerResponse(request)
  response.assignSocket(new PassThrough().resume() as never)
  assert.deepEqual(await respond(request, response, createStreamedResponse()), {
    bytes: 2 * TEXT_BYTES,
    complete: true,
    failure: undefined,
  })
})
