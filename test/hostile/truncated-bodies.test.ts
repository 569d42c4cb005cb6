import assert from 'node:assert/strict'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { constants, createServer as createHttp2Server, type Http2ServerRequest } from 'node:http2'
import { text } from 'node:stream/consumers'
import { suite, test, type TestContext } from 'node:test'
import { setImmediate as nextTick } from 'node:timers/promises'
import { memoryStore, type PlantStore, type Store } from '../../src/index.ts'
import { createServer as createPlantServer } from '../../src/http-server/create-server.ts'
import { delegatingStore } from '../support/database/delegating-store.ts'
import { Held } from '../support/held.ts'
import { until } from '../support/until.ts'
import { data, goaway, headers, PREFACE, rstStream } from '../support/wire/http2-frames.ts'
import { openBoth, type RawConnection } from '../support/wire/raw-connection.ts'
import { createService, serve } from '../support/wire/service.ts'

const { NGHTTP2_NO_ERROR, NGHTTP2_CANCEL } = constants

const PLANT = '{"id":1,"name":"Fern"}'

type Listener = (request: IncomingMessage, response: ServerResponse) => unknown

/** When a host calls the service. */
const HOSTS: Readonly<Record<string, (plants: PlantStore) => Listener>> = {
  immediately: (plants) => plants,
  'once the client is gone': (plants) => (request, response) => {
    request.once('close', () => setImmediate(plants, request, response))
  },
  'once it has read the body itself': (plants) => (request, response) => {
    // Rejects if the stream reports that it was aborted.
    const read = text(request).then((body) => plants(Object.assign(request, { body }), response))
    read.catch(() => undefined)
  },
  'after it has destroyed the request': (plants) => (request, response) => {
    request.once('data', () => plants(request.destroy(), response))
  },
}

/** Ends a request whose body is incomplete, as a client or as its server. */
type End = (client: RawConnection, request: IncomingMessage) => unknown

const ANY_END: Readonly<Record<string, End>> = {
  'a FIN': ({ socket }) => socket.end(),
  'a TCP reset': ({ socket }) => socket.resetAndDestroy(),
  'its server destroying the connection': (_, { socket }) => socket.destroy(),
}

interface Protocol {
  readonly createServers: Readonly<Record<string, (listener: Listener) => ReturnType<typeof createServer>>>
  /** Bodies that are valid JSON but incomplete, each after its header. */
  readonly bodies: Readonly<Record<string, string | Buffer>>
  readonly ends: Readonly<Record<string, End>>
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
    'a Content-Length that is too large': `POST /plants HTTP/1.1\r\n${FIELDS}Content-Length: 23\r\n\r\n${PLANT}`,
    'chunks without a last one': `POST /plants HTTP/1.1\r\n${FIELDS}Transfer-Encoding: chunked\r\n\r\n${CHUNK}`,
  },
  ends: ANY_END,
}

const PSEUDO = { ':method': 'POST', ':scheme': 'http', ':authority': 'a', ':path': '/plants' }
const HTTP2_FIELDS = { ...PSEUDO, authorization: 'Bearer ada', 'content-type': 'application/json' }

const HTTP2: Protocol = {
  createServers: { 'node:http2': createHttp2Server as unknown as typeof createServer },
  bodies: {
    'no Content-Length': Buffer.concat([PREFACE, headers(HTTP2_FIELDS), data(PLANT)]),
    'a Content-Length': Buffer.concat([PREFACE, headers({ ...HTTP2_FIELDS, 'content-length': '22' }), data(PLANT)]),
  },
  ends: {
    ...ANY_END,
    'RST_STREAM with NO_ERROR': (client) => client.send(rstStream(NGHTTP2_NO_ERROR)),
    'RST_STREAM with CANCEL': (client) => client.send(rstStream(NGHTTP2_CANCEL)),
    'GOAWAY and a FIN': (client) => client.send(goaway(NGHTTP2_NO_ERROR)).socket.end(),
    'its server closing the stream': (_, request) => streamOf(request).close(),
    'its server destroying the stream': (_, request) => streamOf(request).destroy(),
    'its server destroying the session': (_, request) => streamOf(request).session!.destroy(),
  },
}

const streamOf = (request: IncomingMessage) => (request as unknown as Http2ServerRequest).stream

/** Events that a request has caused, in the store and in the hooks of the host. */
function observe(): { events: string[]; store: Store; hooks: object } {
  const events: string[] = []
  const store = delegatingStore(memoryStore(), {
    create: (_, { id }) => events.push(`create ${id}`) > 0,
  })
  const onError = (error: unknown): unknown => events.push(String(error))
  const onResponse = ({ status, complete }: { status: number; complete: boolean }): unknown =>
    events.push(`${status}, complete: ${complete}`)
  return { events, store, hooks: { onError, onResponse } }
}

/** Lets the service do what it would do wrongly. */
async function passTicks(): Promise<void> {
  for (let i = 0; i < 10; i++) await nextTick()
}

/** Sends bytes to a server, ends the request once its listener has it, and waits until the request is closed. */
async function sendTruncated(
  t: TestContext,
  createAny: (listener: Listener) => ReturnType<typeof createServer>,
  listener: Listener,
  bytes: string | Buffer,
  end: End,
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
  const { client, accepted } = await openBoth(server)
  client.send(bytes)
  await until(() => accepted.bytesRead === bytes.length && request !== undefined)
  end(client, request!)
  await until(() => isClosed)
  await passTicks()
  client.socket.destroy()
  await until(() => accepted.closed)
}

for (const [name, { createServers, bodies, ends }] of Object.entries({ 'HTTP/1': HTTP1, 'HTTP/2': HTTP2 })) {
  for (const [server, createAny] of Object.entries(createServers)) {
    for (const [host, mount] of Object.entries(HOSTS)) {
      // This server waits until its listener reads.
      if (server === 'plant-store/server' && host === 'once the client is gone') continue
      suite(`${server}, which calls the service ${host}: no trace of ${name} with`, { timeout: 60_000 }, () => {
        for (const [body, bytes] of Object.entries(bodies)) {
          for (const [how, end] of Object.entries(ends)) {
            test(`${body}, ended by ${how}`, async (t) => {
              const { events, store, hooks } = observe()
              await sendTruncated(t, createAny, mount(createService({ store, ...hooks })), bytes, end)
              assert.deepEqual(events, [])
            })
          }
        }
      })
    }

    suite(`${server}, whose authenticate is still running: no trace of ${name} with`, { timeout: 60_000 }, () => {
      for (const [body, bytes] of Object.entries(bodies)) {
        for (const [caller, expected] of Object.entries({ 'an accepted token': 'ada', 'a rejected token': null })) {
          test(`${body} and ${caller}`, async (t) => {
            const { events, store, hooks } = observe()
            const gate = new Held<string | null>()
            const plants = createService({ store, authenticate: () => gate.call(), ...hooks })
            await sendTruncated(t, createAny, plants, bytes, ANY_END['a TCP reset']!)
            gate.answer(expected)
            await passTicks()
            assert.deepEqual(events, [])
          })
        }
      }
    })
  }
}

suite('no trace of a request in HTTP/2 whose content-length is', { timeout: 60_000 }, () => {
  const ok = PLANT.length
  for (const [name, length, frames] of [
    ['one more than its bytes', ok + 1, [data(PLANT, true)]],
    ['one more than its bytes, which end later', ok + 1, [data(PLANT), data('', true)]],
    ['one more than its bytes, before trailers', ok + 1, [data(PLANT), headers({ 'x-trailer': 'a' }, true)]],
    ['500', 500, [data(PLANT, true)]],
    ['one less than its bytes', ok - 1, [data(PLANT, true)]],
    ['one less than its bytes, in two frames', ok, [data(PLANT), data(' ', true)]],
  ] as const) {
    for (const [host, mount] of Object.entries(HOSTS).slice(0, 3)) {
      test(`${name}, if the host calls the service ${host}`, async (t) => {
        const { events, store, hooks } = observe()
        const head = headers({ ...HTTP2_FIELDS, 'content-length': String(length) })
        const codes: unknown[] = []
        const plants = mount(createService({ store, ...hooks }))
        const listener: Listener = (request, response) => {
          streamOf(request).once('close', () => codes.push(streamOf(request).rstCode))
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

test('no trace of a body in HTTP/2 whose stream is reset in the same packet', { timeout: 60_000 }, async (t) => {
  const { events, store, hooks } = observe()
  const bytes = Buffer.concat([PREFACE, headers(HTTP2_FIELDS), data(PLANT), rstStream(NGHTTP2_CANCEL)])
  const plants = createService({ store, ...hooks })
  await sendTruncated(t, HTTP2.createServers['node:http2']!, plants, bytes, () => undefined)
  assert.deepEqual(events, [])
})

for (const [name, bytes] of [
  ['chunk', 'zz\r\n'],
  ['trailer', '0\r\nno trailer\r\n\r\n'],
] as const) {
  test(`no trace of a body in HTTP/1 with a malformed ${name}`, { timeout: 60_000 }, async (t) => {
    const { events, store, hooks } = observe()
    const plants = createService({ store, ...hooks })
    const start = HTTP1.bodies['chunks without a last one']!
    await sendTruncated(t, createServer, plants, start, (client) => client.send(bytes))
    assert.deepEqual(events, [])
  })
}

for (const [name, createAny] of Object.entries(HTTP1.createServers).slice(0, 2)) {
  test(`reports no early error for a body that ${name} rejects in the same packet`, { timeout: 60_000 }, async (t) => {
    const { events, store, hooks } = observe()
    const { client } = await openBoth(
      await serve(t, createAny(createService({ store, authenticate: () => null, ...hooks }))),
    )
    client.send(`${String(HTTP1.bodies['chunks without a last one'])}zz\r\n`)
    assert.match(await client.closed, /^HTTP\/1\.1 400 /)
    await passTicks()
    assert.deepEqual(events, [])
  })
}

suite('keeps a plant if the body of a DELETE, which means nothing, ends early:', { timeout: 60_000 }, () => {
  const deletion = { ...HTTP2_FIELDS, ':method': 'DELETE', ':path': '/plants/1' }
  for (const [name, createAny, bytes] of [
    ['a Content-Length', createServer, `DELETE /plants/1 HTTP/1.1\r\n${FIELDS}Content-Length: 9\r\n\r\n{}`],
    ['chunks', createServer, `DELETE /plants/1 HTTP/1.1\r\n${FIELDS}Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n`],
    ['HTTP/2', HTTP2.createServers['node:http2']!, Buffer.concat([PREFACE, headers(deletion), data('{}')])],
  ] as const) {
    for (const [when, wait] of [
      ['', () => undefined],
      [', while authenticate runs', (gate: Held<string>) => gate.answered],
    ] as const) {
      test(`${name}${when}`, async (t) => {
        const { events, store, hooks } = observe()
        const gate = new Held<string>()
        const deletes = delegatingStore(store, { delete: (_, id) => events.push(`delete ${id}`) > 0 })
        const plants = createService({ store: deletes, authenticate: (token) => wait(gate) ?? token, ...hooks })
        await sendTruncated(t, createAny, plants, bytes, ANY_END['a TCP reset']!)
        gate.answer('ada')
        await passTicks()
        assert.deepEqual(events, [])
      })
    }
  }
})

for (const [name, path, status] of [
  ['once its body is complete', '/plants/1', 204],
  ['immediately if its id is invalid', '/plants/x', 400],
] as const) {
  test(`answers a DELETE with a body ${name}`, { timeout: 60_000 }, async (t) => {
    const store = delegatingStore(memoryStore(), { delete: () => true })
    const server = await serve(t, createService({ store }))
    const { client } = await openBoth(server)
    client.send(`DELETE ${path} HTTP/1.1\r\n${FIELDS}Content-Length: 9\r\n\r\n{}`)
    if (status === 204) await passTicks()
    else await client.receive(/}$/)
    const before = client.received.slice(0, 12)
    client.send('1234567')
    await client.receive(/\r\n\r\n/)
    assert.deepEqual(
      [before, client.received.slice(0, 12)],
      [status === 204 ? '' : 'HTTP/1.1 400', `HTTP/1.1 ${status}`],
    )
    client.socket.destroy()
  })
}

test('plant-store/server closes a connection that was half-closed within a body', { timeout: 60_000 }, async (t) => {
  const gate = new Held<string>()
  const server = await serve(t, createPlantServer(createService({ authenticate: () => gate.call() })).server)
  const { client, accepted } = await openBoth(server)
  client.send(`POST /plants HTTP/1.1\r\n${FIELDS}Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n`).socket.end()
  await gate.called
  await until(() => accepted.readableEnded)
  gate.answer('ada')
  assert.match(await client.closed, /^HTTP\/1\.1 400 [^]*"error":40000,/)
})

suite('plant-store/server reports only its own error for a malformed body that', { timeout: 60_000 }, () => {
  for (const [method, caller, expected] of [
    ['POST', 'ada', []],
    ['POST', null, []],
    // A list doesn't depend on the body, so it ran, and its client didn't get it.
    ['GET', 'ada', ['200, complete: false']],
    ['GET', null, []],
  ] as const) {
    test(`the host reads while authenticate runs: ${method}, a token of ${caller}`, async (t) => {
      const { events, store, hooks } = observe()
      const gate = new Held<string | null>()
      const plants = createService({ store, authenticate: () => gate.call(), ...hooks })
      const listener: Listener = (request, response) => plants(request.resume(), response)
      const { client } = await openBoth(await serve(t, createPlantServer(listener).server))
      client.send(`${method} /plants HTTP/1.1\r\n${FIELDS}Transfer-Encoding: chunked\r\n\r\n${CHUNK}zz\r\n`)
      await client.receive(/^HTTP\/1\.1 400 [^]*"error":40000,/)
      gate.answer(caller)
      await passTicks()
      assert.deepEqual(events, expected)
      assert.match(await client.closed, /^HTTP\/1\.1 400 [^]*}$/)
    })
  }
})

test('keeps a plant whose stream is reset once its body is complete', { timeout: 60_000 }, async (t) => {
  const { events, store, hooks } = observe()
  const gate = new Held<boolean>()
  const plants = createService({ store: delegatingStore(store, { create: () => gate.call() }), ...hooks })
  const bytes = Buffer.concat([PREFACE, headers(HTTP2_FIELDS), data(PLANT, true)])
  await sendTruncated(t, HTTP2.createServers['node:http2']!, plants, bytes, async (client) => {
    await gate.called
    client.send(rstStream(NGHTTP2_CANCEL))
  })
  gate.answer(true)
  await until(() => events.length > 0)
  assert.deepEqual(events, ['200, complete: false'])
})
