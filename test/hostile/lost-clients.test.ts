import assert from 'node:assert/strict'
import type { Server } from 'node:http'
import type { Socket } from 'node:net'
import { test, type TestContext } from 'node:test'
import { memoryStore, type ResponseEvent } from '../../src/index.ts'
import { delegatingStore } from '../support/database/delegating-store.ts'
import { pageAfter } from '../support/database/plant-source.ts'
import { Held } from '../support/held.ts'
import { heapUsed } from '../support/heap.ts'
import { openBoth, RawConnection } from '../support/wire/raw-connection.ts'
import { get, send, servePlants } from '../support/wire/service.ts'
import { until } from '../support/until.ts'

const AUTHORIZED = 'Host: a\r\nAuthorization: Bearer ada\r\n'
const HEADER = `POST /plants HTTP/1.1\r\n${AUTHORIZED}Content-Type: application/json\r\n`
const PLANT = '{"id":1,"name":"Fern"}'
const FRAMINGS = {
  'a Content-Length': `${HEADER}Content-Length: ${PLANT.length}\r\n\r\n${PLANT}`,
  chunks: `${HEADER}Transfer-Encoding: chunked\r\n\r\n5\r\n{"id"\r\n11\r\n:1,"name":"Fern"}\r\n0\r\n\r\n`,
}

interface Counts {
  /** How many plants the store was given. */
  creates: number
  /** How many errors the host was told of. */
  errors: number
}

async function serveCounting(t: TestContext): Promise<{ server: Server; counts: Counts }> {
  const counts = { creates: 0, errors: 0 }
  const memory = memoryStore()
  const store = delegatingStore(memory, {
    create(owner, plant) {
      counts.creates++
      return memory.create(owner, plant)
    },
  })
  const server = await servePlants(t, { store, onError: () => counts.errors++ })
  return { server, counts }
}

const LOSSES: Readonly<Record<string, (client: Socket) => void>> = {
  'ends the connection': (client) => client.end(),
  'resets the connection': (client) => client.resetAndDestroy(),
}

for (const [framing, bytes] of Object.entries(FRAMINGS)) {
  for (const [loss, lose] of Object.entries(LOSSES)) {
    test(`a client that ${loss} at any byte of a POST with ${framing} leaves no trace`, async (t) => {
      const { server, counts } = await serveCounting(t)

      for (let length = 0; length < bytes.length; length++) {
        const { client, accepted } = await openBoth(server)
        client.send(bytes.slice(0, length))
        await until(() => accepted.bytesRead === length)
        lose(client.socket)
        await until(() => accepted.closed)
      }

      assert.deepEqual(counts, { creates: 0, errors: 0 })
      assert.equal((await send(server, get('ada'))).body, '[]')
    })
  }

  test(`a client that goes after the last byte of a POST with ${framing} stops no write`, async (t) => {
    const { server, counts } = await serveCounting(t)
    const { client, accepted } = await openBoth(server)

    client.send(bytes)
    await until(() => accepted.bytesRead === bytes.length)
    client.socket.resetAndDestroy()
    await until(() => accepted.closed)

    assert.deepEqual(counts, { creates: 1, errors: 0 })
    assert.equal((await send(server, get('ada'))).body, '[{"name":"Fern"}]')
  })

  test(`a client that sends a POST with ${framing} byte by byte is answered`, async (t) => {
    const { server } = await serveCounting(t)
    const { client, accepted } = await openBoth(server)
    const answers = client.answers(1)

    for (let at = 0; at < bytes.length; at++) {
      client.send(bytes.charAt(at))
      await until(() => accepted.bytesRead === at + 1)
    }

    const seen = (await answers).map(({ status, body }) => [status, body])
    assert.deepEqual(seen, [[200, '{"name":"Fern"}']])
    client.socket.destroy()
  })
}

test('the body of a client that went while its token was looked at is bounded too', async (t) => {
  const calls: string[] = []
  const held = new Held<string>()
  const store = delegatingStore(memoryStore(), { create: (_, { id }) => calls.push(`create ${id}`) > 0 })
  const onResponse = ({ error }: ResponseEvent): number => calls.push(`error ${error}`)
  const authenticate = (): Promise<string> => held.call()
  const server = await servePlants(t, { store, authenticate, maxBodyBytes: PLANT.length - 1, onResponse })
  const { client, accepted } = await openBoth(server)

  client.send(FRAMINGS.chunks)
  await held.called
  await until(() => accepted.bytesRead === FRAMINGS.chunks.length)
  client.socket.resetAndDestroy()
  await until(() => accepted.closed)
  held.answer('ada')
  await until(() => calls.some((call) => call.startsWith('error')))

  // No create.
  assert.deepEqual(calls, ['error 41300'])
})

test('a client that never reads its answers costs one of them', async (t) => {
  const name = 'a'.repeat(1000)
  let pages = 0
  const store = delegatingStore(memoryStore(), {
    list: (_, { after = 0n }) => {
      if (after >= 10_000n) return []
      pages++
      return pageAfter(after, name)
    },
  })
  const server = await servePlants(t, { store })
  const { client, accepted } = await openBoth(server)
  const before = heapUsed()

  // 100 answers of 10 MB each.
  client.socket.pause().write(`GET /plants HTTP/1.1\r\n${AUTHORIZED}\r\n`.repeat(100))
  for (let i = 0; i < 100; i++) assert.equal((await send(server, get('bob', '/plants?limit=0'))).status, 200)

  // What is not in a page or two of the service is in the buffers of the two sockets.
  assert.ok(pages <= 30, `${pages} pages were read`)
  assert.ok(heapUsed() - before < 16 * 2 ** 20)
  client.socket.destroy()
  await until(() => accepted.closed)
})

const BEFORE_BODY = `${HEADER}Content-Length: 9\r\n\r\n`

test('1,000 connections that send a header and stall keep no one else waiting', async (t) => {
  const { server } = await serveCounting(t)
  const stalled: RawConnection[] = []
  while (stalled.length < 1000) {
    const opened = await Promise.all(Array.from({ length: 50 }, () => RawConnection.open(server)))
    // Half of them in the header, half before the body.
    for (const [i, client] of opened.entries()) client.send(i % 2 === 0 ? HEADER : BEFORE_BODY)
    stalled.push(...opened)
  }

  for (let i = 0; i < 100; i++) assert.equal((await send(server, get('ada'))).status, 200)

  assert.equal(stalled.filter(({ socket }) => socket.closed || socket.bytesRead > 0).length, 0)
  for (const { socket } of stalled) socket.destroy()
})
