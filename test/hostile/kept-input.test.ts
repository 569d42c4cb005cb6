import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { Server } from 'node:http'
import { suite, test } from 'node:test'
import { memoryStore } from '../../src/index.ts'
import { delegatingStore } from '../support/database/delegating-store.ts'
import { Held } from '../support/held.ts'
import { heapUsed } from '../support/heap.ts'
import { openBoth, RawConnection } from '../support/wire/raw-connection.ts'
import { get, send } from '../support/wire/service.ts'
import { serveStandalone } from '../support/program/standalone-server.ts'

const LIVEZ = 'GET /livez HTTP/1.1\r\nHost: a\r\n\r\n'
const DELETE = 'DELETE /plants/1 HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ada\r\n\r\n'
const MIB = 2 ** 20

/** Lets the server read what it would read. */
async function letRead(server: Server): Promise<void> {
  for (let i = 0; i < 50; i++) await send(server, get('ada', '/livez'))
}

test('empty lines without end are not kept', async (t) => {
  const server = await serveStandalone(t)
  const { client, accepted } = await openBoth(server)
  await client.send(LIVEZ).receive(/}$/)
  const memory = (): number => heapUsed() + process.memoryUsage().arrayBuffers
  const before = memory()
  const lines = Buffer.from('\r\n'.repeat(MIB / 2))
  for (let sent = 0; sent < 24; sent++) if (!client.socket.write(lines)) await once(client.socket, 'drain')
  assert.ok(accepted.bytesRead > 12 * MIB, `${accepted.bytesRead} bytes were read`)
  const growth = memory() - before
  assert.ok(growth < 6 * MIB, `it has kept ${growth} bytes`)
  client.socket.destroy()
})

suite('behind what ends the requests of a connection, nothing more is read:', () => {
  const rows: readonly [name: string, sent: string, event: string][] = [
    ['malformed bytes', 'BAD\r\n\r\n', 'clientError'],
    ['CONNECT', 'CONNECT plants:80 HTTP/1.1\r\nHost: plants\r\n\r\n', 'connect'],
  ]
  for (const [name, sent, event] of rows) {
    for (const [what, before] of [
      ['on a new connection', ''],
      ['behind a response that is still open', DELETE],
    ]) {
      test(`${name} ${what}`, async (t) => {
        const gate = new Held<boolean>()
        const store = delegatingStore(memoryStore(), { delete: () => gate.call() })
        const server = await serveStandalone(t, { store })
        const { client, accepted } = await openBoth(server)
        const ended = once(server, event)
        client.send(before! + sent)
        await ended
        client.send(Buffer.alloc(20 * MIB, 'x'))
        await letRead(server)
        assert.ok(accepted.bytesRead < MIB, `${accepted.bytesRead} bytes were read`)
        assert.ok(accepted.readableLength < MIB, `${accepted.readableLength} bytes are kept`)
        gate.answer(false)
        await client.receive(/"error":40000,/)
        client.socket.destroy()
      })
    }
  }
})

test('a field of many blanks costs no time in a request that is refused', async (t) => {
  const server = await serveStandalone(t, {}, { maxHeaderBytes: 2 ** 20 })
  const client = await RawConnection.open(server)
  const { user: before } = process.cpuUsage()
  const blanks = ' '.repeat(200_000)
  await client.send(`GET /livez HTTP/1.1\r\nOrigin: a${blanks}b\r\nX-Request-Id: a${blanks}b\r\nno field\r\n\r\n`)
    .closed
  // A pattern that tries each blank with each other would take a minute.
  assert.ok(process.cpuUsage().user - before < 5_000_000)
})
