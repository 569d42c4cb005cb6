import assert from 'node:assert/strict'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { constants, createServer as createHttp2Server, type Http2ServerRequest } from 'node:http2'
import { text } from 'node:stream/consumers'
import { suite, test, type TestContext } from 'node:test'
import { setImmediate as nextTick } from 'node:timers/promises'
import { memoryStore, type PlantStore, type Store } from '../../src/index.ts'
import { createServer as createPlantServer } from '../../src/http-server/create-server.ts'
import { overrideStore } from '../support/override-store.ts'
import { DeferredCall } from '../support/deferred-call.ts'
import { waitUntil } from '../support/wait-until.ts'
import { encodeData, encodeGoaway, encodeHeaders, PREFACE, encodeRstStream } from '../support/http2-frames.ts'
import { connectPair, type RawConnection } from '../support/raw-connection.ts'
import { createService, serve } from '../support/service.ts'

const { NGHTTP2_NO_ERROR, NGHTTP2_CANCEL } = constants

const PLANT = '{"id":1,"name":"Fern"}'

type Listener = (request: IncomingMessage, response: ServerResponse) => unknown

/** When the host calls the service. */
const HOSTS: Readonly<Record<string, (plants: PlantStore) => Listener>> = {
  immediately: (plants) => plants,
  'after the client has disconnected': (plants) => (request, response) => {
    request.once('close', () => setImmediate(plants, request, response))
  },
  'after reading the body itself': (plants) => (request, response) => {
    // Rejects if the stream reports that the client has aborted the request.
    const read = text(request).then((body) => plants(Object.assign(request, { body }), response))
    read.catch(() => undefined)
  },
  'after destroying the request': (plants) => (request, response) => {
    request.once('data', () => plants(request.destroy(), response))
  },
}

/** Ends a request whose body is incomplete, on the client's or on the server's side. */
type EndRequest = (client: RawConnection, request: IncomingMessage) => unknown

const COMMON_ENDS: Readonly<Record<string, EndRequest>> = {
  'a FIN': ({ socket }) => socket.end(),
  'a TCP reset': ({ socket }) => socket.resetAndDestroy(),
  'the server destroying the connection': (_, { socket }) => socket.destroy(),
}

interface Protocol {
  readonly createServers: Readonly<Record<string, (listener: Listener) => ReturnType<typeof createServer>>>
  /** Bodies that are valid JSON but incomplete, each after its header. */
  readonly bodies: Readonly<Record<string, string | Buffer>>
  readonly ends: Readonly<Record<string, EndRequest>>
}

const FIELDS = 'Host: a\r\nAuthorization: Bearer ada\r\nContent-Type: application/json\r\n'
const CHUNK = `${PLANT.length.toString(16)}\r\n${PLANT}\r\n`

const HTTP1: Protocol = {
  createServers: {
    'node:http': createServer,
    'node:http with httpAllowHalfOpen': (listener) =>
      Object.assign(createServer(listener), { httpAllowHalfOpen: true }),
    'plant-store/server': (listener) => createPlantServer(listener).server,
  },
  bodies: {
    'an incomplete body with Content-Length': `POST /plants HTTP/1.1\r\n${FIELDS}Content-Length: 23\r\n\r\n${PLANT}`,
    'chunks without a last chunk': `POST /plants HTTP/1.1\r\n${FIELDS}Transfer-Encoding: chunked\r\n\r\n${CHUNK}`,
  },
  ends: COMMON_ENDS,
}

const PSEUDO_HEADERS = { ':method': 'POST', ':scheme': 'http', ':authority': 'a', ':path': '/plants' }
const HTTP2_FIELDS = { ...PSEUDO_HEADERS, authorization: 'Bearer ada', 'content-type': 'application/json' }

const HTTP2: Protocol = {
  createServers: { 'node:http2': createHttp2Server as unknown as typeof createServer },
  bodies: {
    'no Content-Length': Buffer.concat([PREFACE, encodeHeaders(HTTP2_FIELDS), encodeData(PLANT)]),
    'a Content-Length': Buffer.concat([
      PREFACE,
      encodeHeaders({ ...HTTP2_FIELDS, 'content-length': '22' }),
      encodeData(PLANT),
    ]),
  },
  ends: {
    ...COMMON_ENDS,
    'RST_STREAM with NO_ERROR': (client) => client.send(encodeRstStream(NGHTTP2_NO_ERROR)),
    'RST_STREAM with CANCEL': (client) => client.send(encodeRstStream(NGHTTP2_CANCEL)),
    'GOAWAY and a FIN': (client) => client.send(encodeGoaway(NGHTTP2_NO_ERROR)).socket.end(),
    'the server closing the stream': (_, request) => getStream(request).close(),
    'the server destroying the stream': (_, request) => getStream(request).destroy(),
    'the server destroying the session': (_, request) => getStream(request).session!.destroy(),
  },
}

const getStream = (request: IncomingMessage) => (request as unknown as Http2ServerRequest).stream

/** Records the store calls, errors and responses that a request causes. */
function recordEvents(): { events: string[]; store: Store; hooks: object } {
  const events: string[] = []
  const store = overrideStore(memoryStore(), {
    create: (_, { id }) => events.push(`create ${id}`) > 0,
  })
  const onError = (error: unknown): unknown => events.push(String(error))
  const onResponse = ({ status, complete }: { status: number; complete: boolean }): unknown =>
    events.push(`${status}, complete: ${complete}`)
  return { events, store, hooks: { onError, onResponse } }
}

/** Gives the service time to act on the truncated body. It must not do so. */
async function waitForTicks(): Promise<void> {
  for (let i = 0; i < 10; i++) await nextTick()
}

/** Sends bytes to a server, ends the request once its listener has it, and waits until the request is closed. */
async function sendTruncated(
  t: TestContext,
  createAny: (listener: Listener) => ReturnType<typeof createServer>,
  listener: Listener,
  bytes: string | Buffer,
  end: EndRequest,
): Promise<void> {
  let request: IncomingMessage | undefined
  let isClosed = false
  const server = await serve(
    t,
    createAny((received, response) => {
      request ??= received.once('close', () => (isClosed = true))
      listener(received, response)
    }),
  )
  const { client, accepted } = await connectPair(server)
  client.send(bytes)
  await waitUntil(() => accepted.bytesRead === bytes.length && request !== undefined)
  end(client, request!)
  await waitUntil(() => isClosed)
  await waitForTicks()
  client.socket.destroy()
  await waitUntil(() => accepted.closed)
}

for (const [name, { createServers, bodies, ends }] of Object.entries({ 'HTTP/1': HTTP1, 'HTTP/2': HTTP2 })) {
  for (const [server, createAny] of Object.entries(createServers)) {
    for (const [host, mount] of Object.entries(HOSTS)) {
      // This server only detects the disconnect once its listener reads.
      if (server === 'plant-store/server' && host === 'after the client has disconnected') continue
      suite(
        `ignores a truncated ${name} request (${server}, which calls the service ${host})`,
        { timeout: 60_000 },
        () => {
          for (const [body, bytes] of Object.entries(bodies)) {
            for (const [how, end] of Object.entries(ends)) {
              test(`with ${body}, ended by ${how} (${server}, ${host})`, async (t) => {
                const { events, store, hooks } = recordEvents()
                await sendTruncated(t, createAny, mount(createService({ store, ...hooks })), bytes, end)
                assert.deepEqual(events, [])
              })
            }
          }
        },
      )
    }

    suite(`ignores a truncated ${name} request while authenticate runs (${server})`, { timeout: 60_000 }, () => {
      for (const [body, bytes] of Object.entries(bodies)) {
        for (const [caller, expected] of Object.entries({ 'an accepted token': 'ada', 'a rejected token': null })) {
          test(`with ${body} and ${caller} (${server})`, async (t) => {
            const { events, store, hooks } = recordEvents()
            const gate = new DeferredCall<string | null>()
            const plants = createService({ store, authenticate: () => gate.call(), ...hooks })
            await sendTruncated(t, createAny, plants, bytes, COMMON_ENDS['a TCP reset']!)
            gate.resolve(expected)
            await waitForTicks()
            assert.deepEqual(events, [])
          })
        }
      }
    })
  }
}

suite('ignores an HTTP/2 request with a mismatched content-length (request smuggling)', { timeout: 60_000 }, () => {
  const ok = PLANT.length
  for (const [name, length, frames] of [
    ['one byte more than the body', ok + 1, [encodeData(PLANT, true)]],
    ['one byte more than the body, which ends in another frame', ok + 1, [encodeData(PLANT), encodeData('', true)]],
    [
      'one byte more than the body, which ends with trailers',
      ok + 1,
      [encodeData(PLANT), encodeHeaders({ 'x-trailer': 'a' }, true)],
    ],
    ['500 bytes for a shorter body', 500, [encodeData(PLANT, true)]],
    ['one byte less than the body', ok - 1, [encodeData(PLANT, true)]],
    ['one byte less than the body, which has two frames', ok, [encodeData(PLANT), encodeData(' ', true)]],
  ] as const) {
    for (const [host, mount] of Object.entries(HOSTS).slice(0, 3)) {
      test(`of ${name}, if the host calls the service ${host}`, async (t) => {
        const { events, store, hooks } = recordEvents()
        const head = encodeHeaders({ ...HTTP2_FIELDS, 'content-length': String(length) })
        const codes: unknown[] = []
        const plants = mount(createService({ store, ...hooks }))
        const listener: Listener = (request, response) => {
          getStream(request).once('close', () => codes.push(getStream(request).rstCode))
          plants(request, response)
        }
        await sendTruncated(t, HTTP2.createServers['node:http2']!, listener, Buffer.concat([PREFACE, head]), (client) =>
          client.send(Buffer.concat(frames)),
        )
        assert.deepEqual(
          { events, codes: codes.map((code) => code !== NGHTTP2_NO_ERROR) },
          { events: [], codes: [true] },
        )
      })
    }
  }
})

test('ignores an HTTP/2 request whose stream is reset in the same packet', { timeout: 60_000 }, async (t) => {
  const { events, store, hooks } = recordEvents()
  const bytes = Buffer.concat([
    PREFACE,
    encodeHeaders(HTTP2_FIELDS),
    encodeData(PLANT),
    encodeRstStream(NGHTTP2_CANCEL),
  ])
  const plants = createService({ store, ...hooks })
  await sendTruncated(t, HTTP2.createServers['node:http2']!, plants, bytes, () => undefined)
  assert.deepEqual(events, [])
})

for (const [name, bytes] of [
  ['chunk', 'zz\r\n'],
  ['trailer', '0\r\nno trailer\r\n\r\n'],
] as const) {
  test(`ignores an HTTP/1 request with a malformed ${name}`, { timeout: 60_000 }, async (t) => {
    const { events, store, hooks } = recordEvents()
    const plants = createService({ store, ...hooks })
    const start = HTTP1.bodies['chunks without a last chunk']!
    await sendTruncated(t, createServer, plants, start, (client) => client.send(bytes))
    assert.deepEqual(events, [])
  })
}

suite('ignores a DELETE with a truncated body', { timeout: 60_000 }, () => {
  const deletion = { ...HTTP2_FIELDS, ':method': 'DELETE', ':path': '/plants/1' }
  for (const [name, createAny, bytes] of [
    ['a Content-Length', createServer, `DELETE /plants/1 HTTP/1.1\r\n${FIELDS}Content-Length: 9\r\n\r\n{}`],
    ['chunks', createServer, `DELETE /plants/1 HTTP/1.1\r\n${FIELDS}Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n`],
    ['HTTP/2', HTTP2.createServers['node:http2']!, Buffer.concat([PREFACE, encodeHeaders(deletion), encodeData('{}')])],
  ] as const) {
    for (const [when, wait] of [
      ['', () => undefined],
      [', while authenticate runs', (gate: DeferredCall<string>) => gate.result],
    ] as const) {
      test(`with ${name}${when}`, async (t) => {
        const { events, store, hooks } = recordEvents()
        const gate = new DeferredCall<string>()
        const deletes = overrideStore(store, { delete: (_, id) => events.push(`delete ${id}`) > 0 })
        const plants = createService({ store: deletes, authenticate: (token) => wait(gate) ?? token, ...hooks })
        await sendTruncated(t, createAny, plants, bytes, COMMON_ENDS['a TCP reset']!)
        gate.resolve('ada')
        await waitForTicks()
        assert.deepEqual(events, [])
      })
    }
  }
})

for (const [name, path, status] of [
  ['after its body is complete', '/plants/1', 204],
  ['before its body is complete if the id is invalid', '/plants/x', 400],
] as const) {
  test(`responds to a DELETE ${name}`, { timeout: 60_000 }, async (t) => {
    const store = overrideStore(memoryStore(), { delete: () => true })
    const server = await serve(t, createService({ store }))
    const { client } = await connectPair(server)
    client.send(`DELETE ${path} HTTP/1.1\r\n${FIELDS}Content-Length: 9\r\n\r\n{}`)
    if (status === 204) await waitForTicks()
    else await client.waitFor(/}$/)
    const before = client.received.slice(0, 12)
    client.send('1234567')
    await client.waitFor(/\r\n\r\n/)
    assert.deepEqual(
      [before, client.received.slice(0, 12)],
      [status === 204 ? '' : 'HTTP/1.1 400', `HTTP/1.1 ${status}`],
    )
    client.socket.destroy()
  })
}
