import assert from 'node:assert/strict'
import type { Socket } from 'node:net'
import { test } from 'node:test'
import { inTurn, isHeldBack } from '../../src/http/turn.ts'
import { serveIn } from '../support/wire/client.ts'
import { RawConnection } from '../support/wire/raw-connection.ts'
import { serve } from '../support/wire/service.ts'
import { until } from '../support/until.ts'

const GET = 'GET / HTTP/1.1\r\nHost: a\r\n\r\n'

test('a connection is held back while a request waits for its turn', { timeout: 60_000 }, async (t) => {
  const seen: boolean[] = []
  const server = await serve(t, (request, response) => {
    inTurn({ request, response }, () => {
      seen.push(isHeldBack(request.socket))
      // The requests behind it are announced first.
      setImmediate(() => response.end())
    })
  })
  const client = await RawConnection.open(server)
  client.send(GET.repeat(3))
  await client.answers(3)
  client.socket.destroy()
  assert.deepEqual(seen, [false, true, false])
})

for (const [what, act] of [
  ['is being closed', (socket: Socket) => socket.end()],
  ['is lost', (socket: Socket) => socket.destroy()],
] as const) {
  test(`a request on a connection that ${what} is not carried out`, { timeout: 60_000 }, async (t) => {
    let isCarriedOut = false
    const server = await serve(t, (request, response) => {
      act(request.socket)
      inTurn({ request, response }, () => (isCarriedOut = true))
    })
    const client = await RawConnection.open(server)
    await client.send(GET).closed
    assert.ok(!isCarriedOut)
  })
}

test('a stream of HTTP/2 is carried out though its connection is lost', { timeout: 60_000 }, async (t) => {
  let isCarriedOut = false
  const client = await serveIn(t, 'h2c', (request, response) => {
    request.socket.destroy()
    setImmediate(() => inTurn({ request, response }, () => (isCarriedOut = true)))
  })
  await assert.rejects(client.send({ method: 'GET', path: '/', fields: [] }))
  await until(() => isCarriedOut)
})
