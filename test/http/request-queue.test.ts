import assert from 'node:assert/strict'
import type { Socket } from 'node:net'
import { test } from 'node:test'
import { runInOrder, isPaused } from '../../src/http/request-queue.ts'
import { serveAndConnect } from '../support/wire/client.ts'
import { RawConnection } from '../support/wire/raw-connection.ts'
import { serve } from '../support/wire/service.ts'
import { waitUntil } from '../support/wait-until.ts'

const GET = 'GET / HTTP/1.1\r\nHost: a\r\n\r\n'

test('a connection is held back while a request waits for its turn', { timeout: 300_000 }, async (t) => {
  const seen: boolean[] = []
  const server = await serve(t, (request, response) => {
    runInOrder({ request, response }, () => {
      seen.push(isPaused(request.socket))
      // The requests behind it are announced first.
      setImmediate(() => response.end())
    })
  })
  const client = await RawConnection.open(server)
  client.send(GET.repeat(3))
  await client.readResponses(3)
  client.socket.destroy()
  assert.deepEqual(seen, [false, true, false])
})

for (const [what, act] of [
  ['is being closed', (socket: Socket) => socket.end()],
  ['is lost', (socket: Socket) => socket.destroy()],
] as const) {
  test(`a request on a connection that ${what} is not carried out`, { timeout: 300_000 }, async (t) => {
    let isCarriedOut = false
    const server = await serve(t, (request, response) => {
      act(request.socket)
      runInOrder({ request, response }, () => (isCarriedOut = true))
    })
    const client = await RawConnection.open(server)
    await client.send(GET).closed
    assert.ok(!isCarriedOut)
  })
}

test('a stream of HTTP/2 is carried out though its connection is lost', { timeout: 300_000 }, async (t) => {
  let isCarriedOut = false
  const client = await serveAndConnect(t, 'h2c', (request, response) => {
    request.socket.destroy()
    setImmediate(() => runInOrder({ request, response }, () => (isCarriedOut = true)))
  })
  await assert.rejects(client.send({ method: 'GET', path: '/', fields: [] }))
  await waitUntil(() => isCarriedOut)
})
