import assert from 'node:assert/strict'
import { once } from 'node:events'
import { suite, test } from 'node:test'
import { memoryStore } from '../../src/index.ts'
import { measureHeapUsed } from '../support/memory-usage.ts'
import { connectPair, RawConnection } from '../support/wire/raw-connection.ts'
import { get, listStoredIds, sendRequest } from '../support/wire/service.ts'
import { serveStandalone, triggerOverloadGuard } from '../support/program/test-listener.ts'

const FIELDS = 'Host: plants\r\nAuthorization: Bearer ada\r\n'

function post(id: number, fields = ''): string {
  const body = `{"id":${id},"name":"Fern"}`
  const content = `Content-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`
  return `POST /plants HTTP/1.1\r\n${FIELDS}${fields}${content}`
}

test('20 clients that pipeline requests without reading use less than 20 MiB while the overload guard is active', async (t) => {
  const server = await serveStandalone(t)
  const request = 'GET /openapi.json HTTP/1.1\r\nHost: a\r\n\r\n'
  await triggerOverloadGuard(server)
  const before = measureHeapUsed()
  const clients = await Promise.all(Array.from({ length: 20 }, () => RawConnection.open(server)))
  for (const { socket } of clients) socket.pause().write(request.repeat(Math.floor(65_536 / request.length)))
  for (let i = 0; i < 50; i++) await sendRequest(server, get('ada', '/livez'))
  const growth = measureHeapUsed() - before
  assert.ok(growth < 20 * 2 ** 20, `the heap grew by ${growth} bytes`)
  for (const { socket } of clients) socket.destroy()
})

test('a CONNECT request is rejected only after the responses to earlier requests', async (t) => {
  const store = memoryStore()
  for (let id = 1n; id <= 3000n; id++) await store.create('ada', { id, name: 'x'.repeat(2000) })
  const client = await RawConnection.open(await serveStandalone(t, { store }))
  const requests = `GET /plants HTTP/1.1\r\n${FIELDS}\r\nDELETE /plants/3000 HTTP/1.1\r\n${FIELDS}\r\n`
  const [list, ...others] = await client.send(`${requests}CONNECT a:80 HTTP/1.1\r\nHost: a\r\n\r\n`).readResponses()
  assert.equal((JSON.parse(list!.body) as unknown[]).length, 3000)
  assert.deepEqual(
    others.map(({ status }) => status),
    [204, 400],
  )
})

suite('a client that half-closes its connection receives all responses', () => {
  const list = `GET /plants HTTP/1.1\r\n${FIELDS}\r\n`
  const manyFields = 'a:\r\n'.repeat(990)
  const upgrade = 'Connection: upgrade\r\nUpgrade: h2c\r\n'
  const chunked = `POST /plants HTTP/1.1\r\n${FIELDS}Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n`
  const body = '{"id":1,"name":"Fern"}'.padEnd(4096)
  for (const [name, sent, statuses, kept] of [
    ['a create', post(1), [200], [1n]],
    ['creates', post(1) + post(2) + post(1), [200, 200, 409], [1n, 2n]],
    ['a list with half a body', list.replace('Host', 'Content-Length: 100\r\nHost') + '[', [200], []],
    ['a create with many header fields', post(1, manyFields), [200], [1n]],
    ['health checks', 'GET /readyz HTTP/1.1\r\nHost: a\r\n\r\n'.repeat(3), [200, 200, 200], []],
    ['a create and half of another request', `${post(1)}GET /pla`, [200, 400], [1n]],
    ['half of a create request with an Upgrade header', post(1, upgrade).slice(0, -3), [400], []],
    ['half of a long header', `GET / HTTP/1.1\r\nHost: a\r\nX:${' '.repeat(8000)}\r`, [400], []],
    ['half of a long body', post(1).replace('Length: ', 'Length: 9') + ' '.repeat(800), [400], []],
    ['half of a chunk', `${chunked}2000\r\n${' '.repeat(5000)}`, [400], []],
    ['a list and a create in long chunks', `${list}${chunked}1000\r\n${body}\r\n0\r\n\r\n`, [200, 200], [1n]],
    ['no request', '', [], []],
  ] as const) {
    for (const isGuarded of [false, true]) {
      test(`after ${name}${isGuarded ? ' while the overload guard is active' : ''}`, async (t) => {
        const store = memoryStore()
        const server = await serveStandalone(t, { store }, { keepAliveTimeoutMs: 60_000, headersTimeoutMs: 60_000 })
        if (isGuarded) await triggerOverloadGuard(server)
        const { client, accepted } = await connectPair(server)
        const closed = once(accepted, 'close')
        client.socket.end(sent)
        assert.deepEqual(await client.readStatuses(), statuses)
        await closed
        assert.deepEqual(await listStoredIds(store), kept)
      })
    }
  }
})
