import assert from 'node:assert/strict'
import type { Server } from 'node:http'
import { suite, test, type TestContext } from 'node:test'
import { memoryStore, type Store } from '../../src/index.ts'
import type { Limits } from '../../src/http-server/limits.ts'
import { heapUsed } from '../support/heap.ts'
import { RawConnection } from '../support/wire/raw-connection.ts'
import { get, keptIds, send } from '../support/wire/service.ts'
import { serveStandalone, wakeGuard } from '../support/program/standalone-server.ts'

const FIELDS = 'Host: plants\r\nAuthorization: Bearer ada\r\n'
const CONTENT = 'Content-Type: application/json\r\nContent-Length:'

function post(id: number): string {
  const body = `{"id":${id},"name":"Fern"}`
  return `POST /plants HTTP/1.1\r\n${FIELDS}${CONTENT} ${body.length}\r\n\r\n${body}`
}

const THREE_POSTS = post(1) + post(2) + post(3)

/** Serves all that the program does. */
function serve(t: TestContext, store: Store = memoryStore(), limits: Partial<Limits> = {}): Promise<Server> {
  return serveStandalone(t, { authenticate: (token) => (token === 'ada' ? token : null), store }, limits)
}

test('while the guard is awake, clients that pipeline and read nothing cost little memory', async (t) => {
  const server = await serve(t)
  const request = 'GET /openapi.json HTTP/1.1\r\nHost: a\r\n\r\n'
  await wakeGuard(server)
  const before = heapUsed()
  const clients = await Promise.all(Array.from({ length: 20 }, () => RawConnection.open(server)))
  for (const { socket } of clients) socket.pause().write(request.repeat(Math.floor(65_536 / request.length)))
  for (let i = 0; i < 50; i++) await send(server, get('ada', '/livez'))
  const growth = heapUsed() - before
  assert.ok(growth < 20 * 2 ** 20, `the heap grew by ${growth} bytes`)
  for (const { socket } of clients) socket.destroy()
})

suite('none is carried out after a response that closes the connection', () => {
  const early: readonly [name: string, header: string, status: number][] = [
    ['401', `POST /plants HTTP/1.1\r\nHost: a\r\n${CONTENT} 5\r\n\r\n`, 401],
    ['404', `POST /nothing HTTP/1.1\r\nHost: a\r\n${CONTENT} 5\r\n\r\n`, 404],
    ['405', `PUT /plants HTTP/1.1\r\n${FIELDS}${CONTENT} 5\r\n\r\n`, 405],
    ['405 of the program', `PUT /livez HTTP/1.1\r\n${FIELDS}${CONTENT} 5\r\n\r\n`, 405],
    ['413', `POST /plants HTTP/1.1\r\n${FIELDS}${CONTENT} 65537\r\n\r\n`, 413],
    ['415', `POST /plants HTTP/1.1\r\n${FIELDS}Content-Type: text/plain\r\nContent-Length: 5\r\n\r\n`, 415],
    ['501', `POST /plants HTTP/1.1\r\n${FIELDS}Transfer-Encoding: gzip, chunked\r\n\r\n`, 501],
  ]
  for (const [name, header, status] of early) {
    test(`an early ${name}, and POSTs in the packet of its body`, async (t) => {
      const store = memoryStore()
      const client = await RawConnection.open(await serve(t, store))
      assert.deepEqual(await client.send(header).statuses(1), [status])
      const length = Number(/Content-Length: (\d+)/.exec(header)?.[1] ?? 0)
      const body = length === 0 ? '5\r\nxxxxx\r\n0\r\n\r\n' : 'x'.repeat(length)
      assert.deepEqual(await client.send(body + THREE_POSTS).answers(), [])
      assert.deepEqual(await keptIds(store), [])
    })
  }
})

test('CONNECT is refused after a long list, and a request behind it, are answered', async (t) => {
  const store = memoryStore()
  for (let id = 1n; id <= 3000n; id++) await store.create('ada', { id, name: 'x'.repeat(2000) })
  const client = await RawConnection.open(await serve(t, store))
  const requests = `GET /plants HTTP/1.1\r\n${FIELDS}\r\nDELETE /plants/3000 HTTP/1.1\r\n${FIELDS}\r\n`
  const [list, ...others] = await client.send(`${requests}CONNECT a:80 HTTP/1.1\r\nHost: a\r\n\r\n`).answers()
  assert.equal((JSON.parse(list!.body) as unknown[]).length, 3000)
  assert.deepEqual(
    others.map(({ status }) => status),
    [204, 400],
  )
})
