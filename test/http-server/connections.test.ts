import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { Socket } from 'node:net'
import { test } from 'node:test'
import { connectionOf, keepConnections } from '../../src/http-server/connections.ts'
import { openBoth } from '../support/wire/raw-connection.ts'
import { close, listen } from '../support/wire/service.ts'

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
