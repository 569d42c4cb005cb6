import assert from 'node:assert/strict'
import type { Socket } from 'node:net'
import { test } from 'node:test'
import { runInOrder, isPaused } from '../../src/http/request-queue.ts'
import { serveAndConnect } from '../support/wire/client.ts'
import { RawConnection } from '../support/wire/raw-connection.ts'
import { serve } from '../support/wire/service.ts'
import { waitUntil } from '../support/wait-until.ts'

const GET = 'GET / HTTP/1.1\r\nHost: a\r\n\r\n'

test('a connection is paused while its requests are queued', { timeout: 60_000 }, async (t) => {
  const seen: boolean[] = []
  const server = await serve(t, (request, response) => {
    runInOrder({ request, response }, () => {
      seen.push(isPaused(request.socket))
      // Node emits the pipelined requests first.
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
  ['is closing', (socket: Socket) => socket.end()],
  ['was destroyed', (socket: Socket) => socket.destroy()],
] as const) {
  test(`a request is dropped if its connection ${what}`, { timeout: 60_000 }, async (t) => {
    let isExecuted = false
    const server = await serve(t, (request, response) => {
      act(request.socket)
      runInOrder({ request, response }, () => (isExecuted = true))
    })
    const client = await RawConnection.open(server)
    await client.send(GET).closed
    assert.ok(!isExecuted)
  })
}

test('an HTTP/2 request is executed even if its connection has been destroyed', { timeout: 60_000 }, async (t) => {
  let isExecuted = false
  const client = await serveAndConnect(t, 'h2c', (request, response) => {
    request.socket.destroy()
    setImmediate(() => runInOrder({ request, response }, () => (isExecuted = true)))
  })
  await assert.rejects(client.send({ method: 'GET', path: '/', fields: [] }))
  await waitUntil(() => isExecuted)
})
