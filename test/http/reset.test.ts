import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'
import { test, type TestContext } from 'node:test'
import { connect as connectTls, createServer as createTlsServer, type TLSSocket } from 'node:tls'
import { reset } from '../../src/http/transport.ts'
import { TLS } from '../support/wire/certificate.ts'
import { listen, portOf } from '../support/wire/service.ts'

/** Accepts one connection, which its client never ends. Gives its end here, and the errors that its client sees. */
async function accept(t: TestContext, isTls = false): Promise<{ accepted: Socket; told: Promise<unknown[]> }> {
  const server = isTls ? createTlsServer(TLS) : createServer()
  await listen(server)
  t.after(() => server.close())
  const accepting = once(server, isTls ? 'secureConnection' : 'connection') as Promise<[Socket | TLSSocket]>
  const where = { port: portOf(server), host: '127.0.0.1', allowHalfOpen: true }
  const client = isTls ? connectTls({ ...where, rejectUnauthorized: false }) : connect(where)
  const events: unknown[] = []
  client.resume().on('error', ({ code }: NodeJS.ErrnoException) => events.push(code))
  t.after(() => client.destroy())
  const told = once(client, 'end').then(
    () => events,
    () => events,
  )
  const [accepted] = await accepting
  return { accepted, told }
}

test('a connection is reset', async (t) => {
  const { accepted, told } = await accept(t)
  const closed = once(accepted, 'close')
  reset(accepted)
  await closed
  assert.deepEqual(await told, ['ECONNRESET'])
})

test('a connection that was ended is reset if its client has not got the rest', async (t) => {
  const { accepted, told } = await accept(t)
  const closed = once(accepted, 'close')
  accepted.end(Buffer.alloc(30_000_000))
  reset(accepted)
  await closed
  assert.deepEqual(await told, ['ECONNRESET'])
})

test('a connection that is just being ended closes all the same', async (t) => {
  const { accepted, told } = await accept(t)
  const closed = once(accepted, 'close')
  accepted.end()
  reset(accepted)
  await closed
  assert.deepEqual(await told, [])
})

test('a connection under TLS, of which Node resets none, is closed', async (t) => {
  const { accepted, told } = await accept(t, true)
  const closed = once(accepted, 'close')
  reset(accepted)
  await closed
  await told
})
