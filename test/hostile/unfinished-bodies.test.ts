/** Tests HTTP/2 requests whose body never ends, as described in advisories about resource exhaustion. */
import '../support/fakeable-timers.ts'
import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { IncomingMessage } from 'node:http'
import {
  connect,
  constants,
  createServer,
  type ClientHttp2Session,
  type ClientHttp2Stream,
  type IncomingHttpHeaders,
  type OutgoingHttpHeaders,
  type Settings,
} from 'node:http2'
import { Readable } from 'node:stream'
import { text } from 'node:stream/consumers'
import { suite, test, type TestContext } from 'node:test'
import { memoryStore, type ResponseEvent } from '../../src/index.ts'
import { overrideStore } from '../support/database/override-store.ts'
import { countTimers } from '../support/event-loop.ts'
import { measureMemoryUsed } from '../support/memory-usage.ts'
import { waitUntil } from '../support/wait-until.ts'
import { close, createService, listen, getPort } from '../support/wire/service.ts'

const { NGHTTP2_CANCEL, NGHTTP2_NO_ERROR } = constants

const MIB = 2 ** 20
const TIMEOUT_MS = 30_000
const DISCARD_MS = 2000
const PLANT = '{"id":1,"name":"Fern"}'
const FIELDS = { authorization: 'Bearer ada', 'content-type': 'application/json' }
const POST = { ...FIELDS, ':method': 'POST', ':path': '/plants' }
const DELETE = { ...FIELDS, ':method': 'DELETE', ':path': '/plants/1' }
const REQUEST_TIMEOUT = '{"error":40800,"message":"The request did not arrive in time."}'

interface TestHost {
  readonly session: ClientHttp2Session
  /** The requests that the service has received. */
  readonly requests: readonly IncomingMessage[]
  /** Calls of the store and of `onResponse`. */
  readonly events: readonly string[]
  /** The number of body bytes that the service has read. */
  readonly bytesRead: () => number
  /** Sends the header of a request and a part of its body. Resolves when the service waits for the rest. */
  readonly open: (fields: OutgoingHttpHeaders, part: string | Buffer) => Promise<ClientHttp2Stream>
}

async function startHost(t: TestContext, settings: Settings = {}): Promise<TestHost> {
  let bytesRead = 0
  const requests: IncomingMessage[] = []
  const events: string[] = []
  const store = overrideStore(memoryStore(), {
    create: (_, { id }) => events.push(`create ${id}`) > 0,
    delete: (_, id) => events.push(`delete ${id}`) > 0,
  })
  const authenticate = (token: string): string | null => (token === 'ada' ? token : null)
  const onResponse = ({ status, error, complete }: ResponseEvent): unknown =>
    events.push([status, error, complete].join(' '))
  const plants = createService({ store, authenticate, onResponse })
  const server = createServer((request, response) => {
    requests.push(request as unknown as IncomingMessage)
    plants(request, response)
    if (request.listenerCount('data') > 0) request.on('data', ({ length }: Buffer) => (bytesRead += length))
  })
  await listen(server)
  const session = connect(`http://127.0.0.1:${getPort(server)}`, { settings })
  t.after(() => {
    session.destroy()
    return close(server)
  })

  async function open(fields: OutgoingHttpHeaders, part: string | Buffer): Promise<ClientHttp2Stream> {
    const count = requests.length + 1
    const stream = session.request(fields, { endStream: false }).on('error', () => undefined)
    if (part.length > 0) stream.write(part)
    await waitUntil(() => requests.length === count && requests.at(-1)!.readableFlowing !== null)
    return stream
  }
  return { session, requests, events, bytesRead: () => bytesRead, open }
}

/** Reads the response, and then lets the time for discarding the body expire, which closes the stream. */
async function readRejection(t: TestContext, stream: ClientHttp2Stream): Promise<[status: unknown, body: string]> {
  const [headers] = (await once(stream, 'response')) as [IncomingHttpHeaders]
  const body = await text(stream)
  assert.ok(!stream.closed, 'the client can read the response before the stream is closed')
  t.mock.timers.tick(DISCARD_MS)
  await waitUntil(() => stream.closed)
  return [headers[':status'], body]
}

suite('unfinished HTTP/2 bodies (resource exhaustion)', { timeout: 60_000 }, () => {
  for (const [name, fields, part] of [
    ['a POST without any body', POST, ''],
    ['a POST with a part of its body', POST, PLANT.slice(0, -1)],
    ['a POST with a whole plant, but without END_STREAM', POST, PLANT],
    ['a POST with a part of a body of known length', { ...POST, 'content-length': 1000 }, PLANT],
    ['a DELETE with an unfinished body', DELETE, '{'],
  ] as const) {
    test(`${name} is rejected with 408 after 30 s`, async (t) => {
      t.mock.timers.enable({ apis: ['setTimeout'] })
      const { events, open } = await startHost(t)
      const stream = await open(fields, part)
      t.mock.timers.tick(TIMEOUT_MS - 1)
      assert.deepEqual(events, [])
      t.mock.timers.tick(1)
      assert.deepEqual(await readRejection(t, stream), [408, REQUEST_TIMEOUT])
      assert.equal(stream.rstCode, NGHTTP2_NO_ERROR)
      assert.deepEqual(events, ['408 40800 true'])
    })
  }

  test('a slow trickle of bytes does not extend the timeout of an unfinished HTTP/2 body', async (t) => {
    t.mock.timers.enable({ apis: ['setTimeout'] })
    const { events, bytesRead, open } = await startHost(t)
    const stream = await open(POST, '{')
    for (let sent = 2; sent <= 4; sent++) {
      t.mock.timers.tick(TIMEOUT_MS / 4)
      stream.write(' ')
      await waitUntil(() => bytesRead() === sent)
    }
    t.mock.timers.tick(TIMEOUT_MS / 4)
    assert.deepEqual(await readRejection(t, stream), [408, REQUEST_TIMEOUT])
    assert.deepEqual(events, ['408 40800 true'])
  })

  test('a body completed after the timeout does not create a plant', async (t) => {
    t.mock.timers.enable({ apis: ['setTimeout'] })
    const { events, open } = await startHost(t)
    const stream = await open(POST, PLANT.slice(0, -1))
    t.mock.timers.tick(TIMEOUT_MS)
    await once(stream, 'response')
    const body = text(stream.end('}'))
    await once(stream, 'close')
    assert.deepEqual([await body, events], [REQUEST_TIMEOUT, ['408 40800 true']])
  })

  test('a body that is completed just before the timeout is accepted', async (t) => {
    t.mock.timers.enable({ apis: ['setTimeout'] })
    const { events, open } = await startHost(t)
    const stream = await open(POST, PLANT.slice(0, -1))
    t.mock.timers.tick(TIMEOUT_MS - 1)
    assert.equal(await text(stream.end('}')), '{"name":"Fern"}')
    t.mock.timers.tick(TIMEOUT_MS)
    assert.deepEqual(events, ['create 1', '200  true'])
  })

  test('unfinished HTTP/2 bodies are freed from memory after the timeout', async (t) => {
    const part = Buffer.alloc(60_000, ' ')
    const count = 100
    const bytes = count * part.length
    const { session, bytesRead, open } = await startHost(t)
    // Warm up: Node and V8 allocate additional memory for the first stream.
    await open(POST, part)
    await waitUntil(() => bytesRead() === part.length)
    t.mock.timers.enable({ apis: ['setTimeout'] })
    const before = await measureMemoryUsed()
    const responses = Array.from({ length: count }, () => {
      const stream = session.request(POST, { endStream: false }).on('error', () => undefined)
      stream.write(part)
      return once(stream, 'response')
    })
    await waitUntil(() => bytesRead() === part.length + bytes)
    const kept = (await measureMemoryUsed()) - before
    t.mock.timers.tick(TIMEOUT_MS)
    await Promise.all(responses)
    const left = (await measureMemoryUsed()) - before
    assert.ok(kept > bytes, `${kept} bytes are kept before the timeout`)
    assert.ok(left < bytes / 4, `${left} bytes are kept after the timeout`)
  })

  test('the timeout is cleared if the client resets the stream', async (t) => {
    const { open } = await startHost(t)
    const timersBefore = countTimers()
    const stream = await open(POST, '{')
    assert.equal(countTimers(), timersBefore + 1)
    stream.close(NGHTTP2_CANCEL)
    await waitUntil(() => countTimers() === timersBefore)
  })
})

suite('rejected HTTP/2 requests whose response is never read (resource exhaustion)', { timeout: 60_000 }, () => {
  const REJECTED = { ...POST, authorization: 'Bearer wrong' }

  test('the stream is closed 2 s after the response if the request body never ends', async (t) => {
    t.mock.timers.enable({ apis: ['setTimeout'] })
    const { open } = await startHost(t, { initialWindowSize: 0 })
    const stream = await open(REJECTED, '{')
    t.mock.timers.tick(DISCARD_MS)
    await waitUntil(() => stream.closed)
    assert.equal(stream.rstCode, NGHTTP2_CANCEL)
  })

  test('the stream is closed 2 s after the response if the request body exceeds 16 MiB', async (t) => {
    t.mock.timers.enable({ apis: ['setTimeout'] })
    const { requests, open } = await startHost(t, { initialWindowSize: 0 })
    const stream = await open(REJECTED, '{')
    const chunk = Buffer.alloc(MIB / 16)
    Readable.from(Array.from({ length: 20 * 16 }, () => chunk)).pipe(stream)
    await waitUntil(() => requests[0]!.isPaused())
    assert.ok(!stream.closed, 'the client can still read the response')
    t.mock.timers.tick(DISCARD_MS)
    await waitUntil(() => stream.closed)
    assert.equal(stream.rstCode, NGHTTP2_CANCEL)
  })
})
