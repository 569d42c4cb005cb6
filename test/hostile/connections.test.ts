import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:http'
import { connect, createServer as createHttp2Server } from 'node:http2'
import type { Socket } from 'node:net'
import { Duplex } from 'node:stream'
import { test } from 'node:test'
import { createServer as createPlantServer } from '../../src/http-server/create-server.ts'
import { memoryStore } from '../../src/index.ts'
import { overrideStore } from '../support/override-store.ts'
import { measureHeapUsed } from '../support/memory-usage.ts'
import { DeferredCall } from '../support/deferred-call.ts'
import { waitUntil } from '../support/wait-until.ts'
import { connectPair, RawConnection } from '../support/raw-connection.ts'
import { createService, get, sendRequest, serve, servePlants } from '../support/service.ts'

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
  ['a Content-Length', createServer, Buffer.from(WITH_LENGTH)],
  ['chunks', createServer, Buffer.from(CHUNKS)],
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
        client.send(bytes.subarray(0, length))
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
    list(_, { after = 0n }) {
      pages++
      const plants = Array.from({ length: 100 }, (_, i) => ({ id: after + BigInt(i + 1), name }))
      return { plants, hasMore: after < 10_000n }
    },
  })
  const server = await servePlants(t, { store })
  const { client, accepted } = await connectPair(server)
  const before = measureHeapUsed()

  // 100 responses of 10 MB each.
  client.socket.pause().write(`GET /plants HTTP/1.1\r\n${AUTHORIZED}\r\n`.repeat(100))
  for (let i = 0; i < 100; i++) assert.equal((await sendRequest(server, get('bob', '/plants?limit=0'))).status, 200)

  // Nearly all of these pages, of 100 kB each, are in the kernel's buffers of the two sockets.
  assert.ok(pages <= 100, `${pages} pages were read`)
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

test('stops reading after a malformed request, even while an earlier request is running', async (t) => {
  const gate = new DeferredCall<boolean>()
  const store = overrideStore(memoryStore(), { delete: () => gate.call() })
  const server = await serve(t, createPlantServer(createService({ store })).server)
  const { client, accepted } = await connectPair(server)
  const rejected = once(server, 'clientError')
  client.send(`${DELETE}BAD\r\n\r\n`)
  await rejected
  client.send(Buffer.alloc(20 * MIB, 'x'))
  // Gives the server time to read.
  for (let i = 0; i < 50; i++) await sendRequest(server, get('ada'))
  assert.ok(accepted.bytesRead < MIB, `${accepted.bytesRead} bytes were read`)
  assert.ok(accepted.readableLength < MIB, `${accepted.readableLength} bytes are buffered`)
  gate.resolve(false)
  await client.waitFor(/ 404 [^]* 400 [^]*"error":40000,/)
  client.socket.destroy()
})
