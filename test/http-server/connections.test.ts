import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { test } from 'node:test'
import { connectionOf, keepConnections } from '../../src/http-server/connections.ts'
import { createHttpServer } from '../../src/http-server/http-server.ts'
import { heapUsed } from '../support/heap.ts'
import { until } from '../support/until.ts'
import { openBoth, RawConnection } from '../support/wire/raw-connection.ts'
import { close, listen, serve } from '../support/wire/service.ts'

test('the connections of a server are those that are open, whichever closes first', async (t) => {
  const server = createServer()
  const connections = keepConnections(server)
  await listen(server)
  t.after(() => close(server))
  const sockets: Socket[] = []
  for (let i = 0; i < 5; i++) sockets.push((await openBoth(server)).accepted)
  const open = new Set(sockets)
  // The last takes the place of the first that closes, and closes next.
  for (const socket of [1, 4, 0].map((index) => sockets[index]!)) {
    socket.destroy()
    await once(socket, 'close')
    open.delete(socket)
    assert.ok(connections.length === open.size && connections.every(({ socket }) => open.has(socket)))
    assert.equal(connectionOf(socket), undefined)
  }
  for (const socket of open) assert.ok(connectionOf(socket)?.socket === socket)
})

test('of a request that was answered, an idle connection keeps nothing', { timeout: 60_000 }, async (t) => {
  const answered: WeakRef<object>[] = []
  function answer(request: IncomingMessage, response: ServerResponse): void {
    answered.push(new WeakRef(request), new WeakRef(response))
    response.end()
  }
  const { server } = createHttpServer(answer, { keepAliveTimeoutMs: 600_000 })
  await serve(t, server)
  const client = await RawConnection.open(server)
  await client.send('GET / HTTP/1.1\r\nHost: a\r\n\r\n').receive(/\r\n\r\n/)
  await until(() => heapUsed() > 0 && answered.every((reference) => reference.deref() === undefined))
})
