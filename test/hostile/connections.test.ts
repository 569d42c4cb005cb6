import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:http'
import { connect, createServer as createHttp2Server } from 'node:http2'
import type { Socket } from 'node:net'
import { Duplex } from 'node:stream'
import { suite, test } from 'node:test'
import { setImmediate as nextTick } from 'node:timers/promises'
import { memoryStore } from '../../src/index.ts'
import { overrideStore } from '../support/database/override-store.ts'
import { EMPTY_PAGE, createPageAfter } from '../support/database/plant-list.ts'
import { measureHeapUsed } from '../support/memory-usage.ts'
import { DeferredCall } from '../support/deferred-call.ts'
import { serveStandalone } from '../support/program/test-listener.ts'
import { waitUntil } from '../support/wait-until.ts'
import { connectPair, RawConnection } from '../support/wire/raw-connection.ts'
import { createService, get, sendRequest, serve, servePlants } from '../support/wire/service.ts'

const MIB = 2 ** 20
const AUTHORIZED = 'Host: a\r\nAuthorization: Bearer ada\r\n'
const POST_HEADER = `POST /plants HTTP/1.1\r\n${AUTHORIZED}Content-Type: application/json\r\n`
const PLANT = '{"id":1,"name":"Fern"}'
const WITH_LENGTH = `${POST_HEADER}Content-Length: ${PLANT.length}\r\n\r\n${PLANT}`
const DELETE = `DELETE /plants/1 HTTP/1.1\r\n${AUTHORIZED}\r\n`

/** Captures the bytes that an HTTP/2 client sends for a POST. */
async function captureHttp2Bytes(): Promise<Buffer> {
  const chunks: Buffer[] = []
  const write = (chunk: Buffer, _: unknown, done: () => void): void => {
    chunks.push(chunk)
    done()
  }
  const stream = new Duplex({ read: () => undefined, write })
  const session = connect('http://a', { createConnection: () => stream })
  const fields = { authorization: 'Bearer ada', 'content-type': 'application/json', 'content-length': PLANT.length }
  await once(session.request({ ':method': 'POST', ':path': '/plants', ...fields }).end(PLANT), 'finish')
  const bytes = Buffer.concat(chunks)
  session.destroy()
  return bytes
}

const CHUNKS = `${POST_HEADER}Transfer-Encoding: chunked\r\n\r\n5\r\n{"id"\r\n11\r\n:1,"name":"Fern"}\r\n0\r\n\r\n`

const FRAMINGS = [
  ['a Content-Length', createServer, WITH_LENGTH],
  ['chunks', createServer, CHUNKS],
  ['HTTP/2 frames', createHttp2Server as unknown as typeof createServer, await captureHttp2Bytes()],
] as const

const DISCONNECTS: Readonly<Record<string, (client: Socket) => void>> = {
  'sends a FIN': (client) => client.end(),
  'resets the connection': (client) => client.resetAndDestroy(),
}

for (const [framing, create, bytes] of FRAMINGS) {
  for (const [loss, disconnect] of Object.entries(DISCONNECTS)) {
    test(`a POST with ${framing} has no effect if its client ${loss} before the last byte`, async (t) => {
      const counts = { creates: 0, errors: 0 }
      const store = overrideStore(memoryStore(), { create: () => ++counts.creates > 0 })
      const server = await serve(t, create(createService({ store, onError: () => counts.errors++ })))

      for (let length = 0; length < bytes.length; length++) {
        const { client, accepted } = await connectPair(server)
        client.send(bytes.slice(0, length))
        await waitUntil(() => accepted.bytesRead === length)
        disconnect(client.socket)
        await waitUntil(() => accepted.closed)
      }

      assert.deepEqual(counts, { creates: 0, errors: 0 })
      const { client } = await connectPair(server)
      client.send(bytes)
      await waitUntil(() => counts.creates === 1)
      client.socket.destroy()
    })
  }
}

test('buffers less than 16 MiB for a client that pipelines list requests but never reads', async (t) => {
  const name = 'a'.repeat(1000)
  let pages = 0
  const store = overrideStore(memoryStore(), {
    list: (_, { after = 0n }) => {
      if (after >= 10_000n) return EMPTY_PAGE
      pages++
      return createPageAfter(after, { name })
    },
  })
  const server = await servePlants(t, { store })
  const { client, accepted } = await connectPair(server)
  const before = measureHeapUsed()

  // 100 responses of 10 MB each.
  client.socket.pause().write(`GET /plants HTTP/1.1\r\n${AUTHORIZED}\r\n`.repeat(100))
  for (let i = 0; i < 100; i++) assert.equal((await sendRequest(server, get('bob', '/plants?limit=0'))).status, 200)

  // One or two pages are in the service, the others in the buffers of the two sockets.
  assert.ok(pages <= 30, `${pages} pages were read`)
  assert.ok(measureHeapUsed() - before < 16 * MIB)
  client.socket.destroy()
  await waitUntil(() => accepted.closed)
})

test("1,000 connections that stall mid-request don't block other clients", async (t) => {
  const server = await servePlants(t)
  const stalled: RawConnection[] = []
  while (stalled.length < 1000) {
    const opened = await Promise.all(Array.from({ length: 50 }, () => RawConnection.open(server)))
    // Half of the connections stall within the header, the other half before the body.
    for (const [i, client] of opened.entries())
      client.send(i % 2 === 0 ? POST_HEADER : `${POST_HEADER}Content-Length: 9\r\n\r\n`)
    stalled.push(...opened)
  }

  for (let i = 0; i < 100; i++) assert.equal((await sendRequest(server, get('ada'))).status, 200)

  assert.equal(stalled.filter(({ socket }) => socket.closed || socket.bytesRead > 0).length, 0)
  for (const { socket } of stalled) socket.destroy()
})

test('runs 10,000 pipelined requests one at a time, in less than 32 MiB of memory', async (t) => {
  const count = 10_000
  let running = 0
  let maxRunning = 0
  let heap = 0
  const memory = memoryStore()
  const store = overrideStore(memory, {
    async create(owner, plant) {
      maxRunning = Math.max(maxRunning, ++running)
      await nextTick()
      if (plant.id % 1000n === 0n) heap = Math.max(heap, measureHeapUsed())
      running--
      return memory.create(owner, plant)
    },
  })
  const server = await servePlants(t, { store })
  const client = await RawConnection.open(server)
  const requests = Array.from({ length: count }, (_, id) => {
    const body = `{"id":${id},"name":"plant ${id}"}`
    return `${POST_HEADER}Content-Length: ${body.length}\r\n\r\n${body}`
  })
  const before = measureHeapUsed()

  client.send(`${requests.join('')}${WITH_LENGTH.replace('Host', 'Connection: close\r\nHost')}`)
  const responses = [...(await client.readResponses())]

  assert.equal(responses.pop()!.status, 409)
  assert.deepEqual(
    responses.map(({ body }) => body),
    Array.from({ length: count }, (_, id) => `{"name":"plant ${id}"}`),
  )
  assert.equal(maxRunning, 1)
  assert.ok(heap - before < 32 * MIB, `the heap grew by ${heap - before} bytes`)
})

test('a pipelined request waits for an earlier request that the host handles', async (t) => {
  let sendHostResponse: (() => void) | undefined
  let creates = 0
  const store = overrideStore(memoryStore(), { create: () => ++creates > 0 })
  const service = createService({ store })
  const server = await serve(t, (request, response) => {
    if (request.url !== '/slow') return service(request, response)
    sendHostResponse = () => response.end('slow')
  })
  const client = await RawConnection.open(server)
  const responses = client.readResponses(2)

  client.send('GET /slow HTTP/1.1\r\nHost: a\r\n\r\n' + WITH_LENGTH)
  await waitUntil(() => sendHostResponse !== undefined)
  assert.equal(creates, 0)
  sendHostResponse?.()

  const bodies = (await responses).map(({ body }) => body)
  assert.deepEqual(bodies, ['slow', '{"name":"Fern"}'])
  client.socket.destroy()
})

test("a response that the host has already ended doesn't block later requests", async (t) => {
  const service = createService()
  const server = await serve(t, (request, response) => {
    if (request.url !== '/plants/1') return service(request, response)
    response.on('finish', () => service(request, response)).end('the host')
  })
  const client = await RawConnection.open(server)
  const first = client.readResponses(1)
  client.send(DELETE)
  const bodies = (await first).map(({ body }) => body)
  assert.deepEqual(bodies, ['the host'])
  const second = client.readStatuses(1)
  client.send(DELETE.replace('DELETE /plants/1', 'GET /plants'))
  assert.deepEqual(await second, [200])
  client.socket.destroy()
})

test('discards an endless stream of empty lines', async (t) => {
  const server = await serveStandalone(t)
  const { client, accepted } = await connectPair(server)
  await client.send('GET /livez HTTP/1.1\r\nHost: a\r\n\r\n').waitFor(/}$/)
  const memory = (): number => measureHeapUsed() + process.memoryUsage().arrayBuffers
  const before = memory()
  const lines = Buffer.from('\r\n'.repeat(MIB / 2))
  for (let sent = 0; sent < 24; sent++) if (!client.socket.write(lines)) await once(client.socket, 'drain')
  assert.ok(accepted.bytesRead > 12 * MIB, `${accepted.bytesRead} bytes were read`)
  const growth = memory() - before
  assert.ok(growth < 6 * MIB, `memory grew by ${growth} bytes`)
  client.socket.destroy()
})

suite('the server stops reading from a rejected connection', () => {
  const rows: readonly [name: string, sent: string, event: string][] = [
    ['malformed bytes', 'BAD\r\n\r\n', 'clientError'],
    ['CONNECT', 'CONNECT plants:80 HTTP/1.1\r\nHost: plants\r\n\r\n', 'connect'],
  ]
  for (const [name, sent, event] of rows) {
    for (const [what, before] of [
      ['on a new connection', ''],
      ['while an earlier request is running', DELETE],
    ]) {
      test(`after ${name} (${what})`, async (t) => {
        const gate = new DeferredCall<boolean>()
        const store = overrideStore(memoryStore(), { delete: () => gate.call() })
        const server = await serveStandalone(t, { store })
        const { client, accepted } = await connectPair(server)
        const ended = once(server, event)
        client.send(before! + sent)
        await ended
        client.send(Buffer.alloc(20 * MIB, 'x'))
        // Gives the server time to read.
        for (let i = 0; i < 50; i++) await sendRequest(server, get('ada', '/livez'))
        assert.ok(accepted.bytesRead < MIB, `${accepted.bytesRead} bytes were read`)
        assert.ok(accepted.readableLength < MIB, `${accepted.readableLength} bytes are buffered`)
        gate.resolve(false)
        await client.waitFor(/"error":40000,/)
        client.socket.destroy()
      })
    }
  }
})
