import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { Socket } from 'node:net'
import { suite, test } from 'node:test'
import { TLSSocket } from 'node:tls'
import { Client } from 'pg'
import { cancelStatement, isAnswering } from '../../../src/stores/postgres/cancel.ts'
import { countTimers } from '../../support/event-loop.ts'
import { TLS } from '../../support/wire/tls/certificate.ts'
import { needsDebian, PostgresServer } from '../../support/wire/debian-servers.ts'
import { takeMessages } from '../../support/wire/message-server.ts'
import { until } from '../../support/until.ts'

/** What PostgreSQL sends in place of a version, and the request to cancel process 7 with key -2. */
const SSL_REQUEST = '0000000804d2162f'
const CANCEL_7 = '0000001004d2162e00000007fffffffe'

const BACKEND = { processID: 7, secretKey: -2, host: '127.0.0.1' }

/** What the store needs of a connection, and nothing else. */
function connection(fields: object): Parameters<typeof cancelStatement>[0] {
  return { query: () => Promise.reject(new Error()), release: () => undefined, on: () => undefined, ...fields }
}

for (const ssl of [undefined, false]) {
  test(`sends the request of the protocol, settles when the server closes, and leaves no timer, if ssl is ${ssl}`, async (t) => {
    const { port, received } = await takeMessages(t)
    const before = countTimers()
    await cancelStatement(connection({ ...BACKEND, port, ssl }), 10_000)
    assert.deepEqual(received, [CANCEL_7])
    assert.equal(countTimers(), before)
  })
}

test('goes to the address that the connection leads to, whatever its name leads to by then', async (t) => {
  const { port, received } = await takeMessages(t)
  const stream = { remoteAddress: '127.0.0.1' }
  await cancelStatement(connection({ ...BACKEND, host: 'elsewhere.invalid', port, connection: { stream } }), 10_000)
  assert.deepEqual(received, [CANCEL_7])
})

test('goes over TLS with the certificates of the system, unless the connection has its own', async (t) => {
  const { port, received } = await takeMessages(t, (socket) => {
    socket.write('S')
    new TLSSocket(socket, { isServer: true, ...TLS }).on('error', () => undefined)
  })
  const cancelled = cancelStatement(connection({ ...BACKEND, host: 'localhost', port, ssl: true }), 10_000)
  await assert.rejects(cancelled, { code: 'DEPTH_ZERO_SELF_SIGNED_CERT' })
  assert.deepEqual(received, [SSL_REQUEST])
})

for (const [name, host, servername] of [
  ['a name', 'localhost', 'localhost'],
  ['an address', '127.0.0.1', false],
  ['no host', undefined, false],
] as const) {
  test(`names the server over TLS as the connection does, by ${name}, and shows its certificate`, async (t) => {
    const seen: unknown[] = []
    const { port } = await takeMessages(t, (socket) => {
      socket.write('S')
      const secure = new TLSSocket(socket, { isServer: true, ...TLS, requestCert: true })
      secure.once('data', (bytes: Buffer) => {
        const { servername } = secure as { servername?: unknown }
        seen.push(servername, secure.getPeerX509Certificate()?.subject, bytes.toString('hex'))
        secure.end()
      })
    })
    // The driver hides the key like this.
    const ssl = Object.defineProperty({ ca: TLS.cert, cert: TLS.cert }, 'key', { value: TLS.key, enumerable: false })
    await cancelStatement(connection({ ...BACKEND, host, port, ssl }), 10_000)
    assert.deepEqual(seen, [servername, 'CN=localhost', CANCEL_7])
  })
}

for (const [name, take, message] of [
  ['refuses TLS', (socket: Socket) => socket.write('N'), 'The server refused TLS for a cancellation.'],
  ['ends the connection', (socket: Socket) => socket.end(), 'The server took no cancellation.'],
  ['ends it instead of beginning TLS', (socket: Socket) => socket.end('S'), /^Client network socket disconnected/],
  ['says nothing', () => undefined, 'No answer within 500 ms.'],
  ['says nothing more about TLS', (socket: Socket) => socket.write('S'), 'No answer within 500 ms.'],
] as const) {
  test(`sends no key to a server that ${name}, fails, and leaves no timer`, { timeout: 60_000 }, async (t) => {
    const { port, received } = await takeMessages(t, take)
    const before = countTimers()
    await assert.rejects(cancelStatement(connection({ ...BACKEND, port, ssl: true }), 500), { message })
    assert.deepEqual(received, [SSL_REQUEST])
    await until(() => countTimers() === before)
  })
}

for (const fields of [{}, { processID: null, secretKey: null }, { processID: 7 }, { secretKey: 8 }]) {
  test(`fails if a connection tells only ${JSON.stringify(fields)}`, async () => {
    const message = 'The connection does not tell how its statements are cancelled.'
    await assert.rejects(cancelStatement(connection(fields), 10_000), { message })
  })
}

suite('asks whether a server says anything', () => {
  test('by a question that opens no session, and leaves no timer and no connection behind', async (t) => {
    let closed: Promise<unknown> | undefined
    const { port, received } = await takeMessages(t, (socket) => {
      closed = once(socket, 'close')
      socket.write('N')
    })
    const before = countTimers()
    assert.equal(await isAnswering(connection({ ...BACKEND, port }), 10_000), true)
    assert.deepEqual(received, [SSL_REQUEST])
    assert.equal(countTimers(), before)
    await closed
  })

  test('and takes the end of the connection, or a refusal, for an answer', async (t) => {
    const { port } = await takeMessages(t)
    assert.equal(await isAnswering(connection({ ...BACKEND, port }), 10_000), true)
    assert.equal(await isAnswering(connection({ ...BACKEND, port: 1 }), 10_000), true)
  })

  test('but not its silence', async (t) => {
    const { port } = await takeMessages(t, () => undefined)
    assert.equal(await isAnswering(connection({ ...BACKEND, port }), 50), false)
  })
})

test('cancels a statement of PostgreSQL over TCP, a Unix socket or TLS', { skip: needsDebian }, async (t) => {
  const tls = ['ssl=on', `ssl_cert_file='localhost.crt'`, `ssl_key_file='localhost.key'`]
  const server = await PostgresServer.start(t, tls)
  for (const config of [{ host: '127.0.0.1' }, { host: server.folder }, { host: 'localhost', ssl: { ca: TLS.cert } }]) {
    const client = new Client({ user: 'plants', database: 'postgres', port: server.port, ...config })
    await client.connect()
    const asleep = assert.rejects(client.query('SELECT pg_sleep(60)'), { code: '57014' })
    await server.until(`SELECT 1 FROM pg_stat_activity WHERE query = 'SELECT pg_sleep(60)' AND state = 'active'`)
    await cancelStatement(client as unknown as Parameters<typeof cancelStatement>[0], 10_000)
    await asleep
    await client.end()
  }
})
