import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { ServerResponse } from 'node:http'
import { connect, createServer, type Socket } from 'node:net'
import { suite, test, type TestContext } from 'node:test'
import { connect as connectTls, createServer as createTlsServer } from 'node:tls'
import { isClosed, resetConnection, onClose } from '../../src/http/transport.ts'
import { TLS } from '../support/wire/tls/certificate.ts'
import { serveAndConnect } from '../support/wire/client.ts'
import { listen, getPort } from '../support/wire/service.ts'
import { waitUntil } from '../support/wait-until.ts'

const GET = { method: 'GET', path: '/', fields: [] }

for (const protocol of ['http', 'h2c'] as const) {
  suite(`a response in ${protocol}`, { timeout: 60_000 }, () => {
    test('onClose calls its callback immediately if the response has ended', async (t) => {
      const seen: boolean[] = []
      const client = await serveAndConnect(t, protocol, (_, response) => {
        seen.push(isClosed(response))
        response.end()
        onClose(response, () => seen.push(isClosed(response)))
        seen.push(false)
      })
      await client.send(GET)
      assert.deepEqual(seen, [false, true, false])
    })

    test('onClose calls its callback when the client disconnects', async (t) => {
      const told: boolean[] = []
      let accepted: ServerResponse | undefined
      const client = await serveAndConnect(t, protocol, (_, response) => {
        accepted = response
        onClose(response, () => told.push(isClosed(response)))
      })
      const request = client.open(GET)
      request.on('error', () => undefined).end()
      await waitUntil(() => accepted !== undefined)

      request.destroy()

      await waitUntil(() => told.length > 0)
      assert.deepEqual(told, [true])
    })
  })
}

suite('resetConnection', { timeout: 60_000 }, () => {
  /** Accepts a connection that its client never ends. Returns the accepted socket, and how the connection ends for the client. */
  async function accept(t: TestContext, isTls: boolean): Promise<{ accepted: Socket; seen: Promise<unknown> }> {
    const server = isTls ? createTlsServer(TLS) : createServer()
    await listen(server)
    t.after(() => server.close())
    const accepting = once(server, isTls ? 'secureConnection' : 'connection') as Promise<[Socket]>
    const where = { port: getPort(server), host: '127.0.0.1', allowHalfOpen: true }
    const client = isTls ? connectTls({ ...where, rejectUnauthorized: false }) : connect(where)
    t.after(() => client.destroy())
    const seen = once(client.resume(), 'end').then(
      () => 'the end',
      (error: unknown) => (error as NodeJS.ErrnoException).code,
    )
    const [accepted] = await accepting
    return { accepted, seen }
  }

  const rows: readonly [name: string, before: (accepted: Socket) => unknown, seen: string, isTls?: true][] = [
    ['resets a connection', () => undefined, 'ECONNRESET'],
    [
      'resets a connection even after socket.end() if the client has not received all data',
      (a) => a.end(Buffer.alloc(30_000_000)),
      'ECONNRESET',
    ],
    ['closes a connection without a reset if no data is left to send', (a) => a.end(), 'the end'],
    ['closes a connection with TLS without a reset', () => undefined, 'the end', true],
  ]
  for (const [name, act, expected, isTls = false] of rows) {
    test(name, async (t) => {
      const { accepted, seen } = await accept(t, isTls)
      const closed = once(accepted, 'close')
      act(accepted)
      resetConnection(accepted)
      await closed
      assert.equal(await seen, expected)
    })
  }
})
