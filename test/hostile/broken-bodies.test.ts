import assert from 'node:assert/strict'
import type { Server } from 'node:http'
import { suite, test, type TestContext } from 'node:test'
import { setImmediate } from 'node:timers/promises'
import { memoryStore, type Store } from '../../src/index.ts'
import { delegatingStore } from '../support/database/delegating-store.ts'
import { RawConnection } from '../support/wire/raw-connection.ts'
import { keptIds } from '../support/wire/service.ts'
import { serveStandalone } from '../support/program/standalone-server.ts'

const FIELDS = 'Host: a\r\nAuthorization: Bearer ada\r\nTransfer-Encoding: chunked\r\n'
const DELETE = `DELETE /plants/1 HTTP/1.1\r\n${FIELDS}\r\n`
const LIST = `GET /plants HTTP/1.1\r\n${FIELDS}\r\n`
const POST = `POST /plants HTTP/1.1\r\n${FIELDS}Content-Type: application/json\r\n\r\n`
const BROKEN = 'no length\r\n'
const MALFORMED = '{"error":40000,"message":"The request is malformed."}'

/** A store that has plants from 1 on, and deletes them a little later. */
async function filledStore(count: number): Promise<Store> {
  const memory = memoryStore()
  for (let id = 1n; id <= count; id++) await memory.create('ada', { id, name: 'x'.repeat(2000) })
  return delegatingStore(memory, { delete: (owner, id) => setImmediate().then(() => memory.delete(owner, id)) })
}

/** Serves as the program does, with tokens that are looked at a little later. */
function serve(t: TestContext, store: Store): Promise<Server> {
  return serveStandalone(t, { authenticate: (token) => setImmediate(token), store })
}

suite('a request without need of a body is answered though its body is malformed, and closes the connection', () => {
  for (const [name, first, rest, statuses] of [
    ['in the same packet', '', DELETE + BROKEN, [204]],
    ['in the same packet, behind another request', '', `${LIST}0\r\n\r\n${DELETE}${BROKEN}`, [200, 204]],
    ['after it was answered', DELETE, BROKEN, [204]],
  ] as const) {
    test(name, async (t) => {
      const store = await filledStore(2)
      const client = await RawConnection.open(await serve(t, store))
      const seen = client.statuses()
      if (first !== '') await client.send(first).answers(1)
      client.send(rest)
      assert.deepEqual(await seen, statuses)
      assert.deepEqual(await keptIds(store), [2n])
    })
  }

  test('while a list is on its way, which comes whole', async (t) => {
    const client = await RawConnection.open(await serve(t, await filledStore(3000)))
    const answers = client.answers()
    client.send(LIST)
    client.socket.once('data', () => client.send(BROKEN))
    const [answer] = await answers
    assert.equal((JSON.parse(answer!.body) as unknown[]).length, 3000)
  })
})

test('a POST whose body turns out to be malformed while its token is looked at is refused', async (t) => {
  const store = await filledStore(0)
  const client = await RawConnection.open(await serve(t, store))
  const answers = client.answers()
  client.send(`${POST}5\r\n{"id"\r\n${BROKEN}`)
  const seen = (await answers).map(({ status, headers, body }) => [status, headers.get('connection'), body])
  assert.deepEqual(seen, [[400, 'close', MALFORMED]])
  assert.deepEqual(await keptIds(store), [])
})
