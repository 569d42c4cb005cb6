import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { Socket } from 'node:net'
import { suite, test } from 'node:test'
import { TLSSocket } from 'node:tls'
import { Client } from 'pg'
import { cancelStatement, isResponding } from '../../../src/stores/postgres/cancel.ts'
import { countTimers } from '../../support/event-loop.ts'
import { TLS } from '../../support/wire/tls/certificate.ts'
import { skipWithoutDebianServers, PostgresServer } from '../../support/wire/debian-servers.ts'
import { startMessageServer } from '../../support/wire/message-server.ts'
import { waitUntil } from '../../support/wait-until.ts'

/** An SSLRequest, and a CancelRequest for process 7 with the secret key -2. */
const SSL_REQUEST = '0000000804d2162f'
const CANCEL_7 = '0000001004d2162e00000007fffffffe'

const BACKEND = { processID: 7, secretKey: -2, host: '127.0.0.1' }

/** Creates a connection with the methods that the store requires, and the given fields. */
function createConnection(fields: object): Parameters<typeof cancelStatement>[0] {
  return { query: () => Promise.reject(new Error()), release: () => undefined, on: () => undefined, ...fields }
}

for (const ssl of [undefined, false]) {
  test(`cancelStatement sends a cancel request and waits until the server closes the connection (ssl: ${ssl})`, async (t) => {
    const { port, received } = await startMessageServer(t)
    const before = countTimers()
    await cancelStatement(createConnection({ ...BACKEND, port, ssl }), 10_000)
    assert.deepEqual(received, [CANCEL_7])
    assert.equal(countTimers(), before)
  })
}

test("cancelStatement uses the connection's IP address even if the host name no longer resolves", async (t) => {
  const { port, received } = await startMessageServer(t)
  const stream = { remoteAddress: '127.0.0.1' }
  await cancelStatement(
    createConnection({ ...BACKEND, host: 'elsewhere.invalid', port, connection: { stream } }),
    10_000,
  )
  assert.deepEqual(received, [CANCEL_7])
})

test('cancelStatement verifies the TLS certificate with the system CAs if the connection has no CA', async (t) => {
  const { port, received } = await startMessageServer(t, (socket) => {
    socket.write('S')
    new TLSSocket(socket, { isServer: true, ...TLS }).on('error', () => undefined)
  })
  const cancelled = cancelStatement(createConnection({ ...BACKEND, host: 'localhost', port, ssl: true }), 10_000)
  await assert.rejects(cancelled, { code: 'DEPTH_ZERO_SELF_SIGNED_CERT' })
  assert.deepEqual(received, [SSL_REQUEST])
})

for (const [name, host, servername] of [
  ['a host name', 'localhost', 'localhost'],
  ['an IP address', '127.0.0.1', false],
  ['a missing host', undefined, false],
] as const) {
  test(`cancelStatement uses the client certificate and the server name of the connection, with ${name}`, async (t) => {
    const seen: unknown[] = []
    const { port } = await startMessageServer(t, (socket) => {
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
    await cancelStatement(createConnection({ ...BACKEND, host, port, ssl }), 10_000)
    assert.deepEqual(seen, [servername, 'CN=localhost', CANCEL_7])
  })
}

for (const [name, take, message] of [
  ['rejects TLS', (socket: Socket) => socket.write('N'), 'The server rejected TLS for the cancel request.'],
  [
    'closes the connection',
    (socket: Socket) => socket.end(),
    'The server closed the connection before the cancel request was sent.',
  ],
  [
    'closes the connection instead of starting TLS',
    (socket: Socket) => socket.end('S'),
    /^Client network socket disconnected/,
  ],
  ['never responds', () => undefined, 'No response within 500 ms.'],
  ['never responds to the TLS handshake', (socket: Socket) => socket.write('S'), 'No response within 500 ms.'],
] as const) {
  test(
    `cancelStatement rejects without sending the secret key if the server ${name}`,
    { timeout: 60_000 },
    async (t) => {
      const { port, received } = await startMessageServer(t, take)
      const before = countTimers()
      await assert.rejects(cancelStatement(createConnection({ ...BACKEND, port, ssl: true }), 500), { message })
      assert.deepEqual(received, [SSL_REQUEST])
      await waitUntil(() => countTimers() === before)
    },
  )
}

for (const fields of [{}, { processID: null, secretKey: null }, { processID: 7 }, { secretKey: 8 }]) {
  test(`cancelStatement rejects if the connection exposes only ${JSON.stringify(fields)}`, async () => {
    const message = 'Cannot cancel the statement: the connection has no processID or no secretKey.'
    await assert.rejects(cancelStatement(createConnection(fields), 10_000), { message })
  })
}

suite('isResponding', () => {
  test('isResponding closes its connection without opening a database session', async (t) => {
    let closed: Promise<unknown> | undefined
    const { port, received } = await startMessageServer(t, (socket) => {
      closed = once(socket, 'close')
      socket.write('N')
    })
    const before = countTimers()
    assert.equal(await isResponding(createConnection({ ...BACKEND, port }), 10_000), true)
    assert.deepEqual(received, [SSL_REQUEST])
    assert.equal(countTimers(), before)
    await closed
  })

  test('isResponding returns true if the server closes or refuses the connection', async (t) => {
    const { port } = await startMessageServer(t)
    assert.equal(await isResponding(createConnection({ ...BACKEND, port }), 10_000), true)
    assert.equal(await isResponding(createConnection({ ...BACKEND, port: 1 }), 10_000), true)
  })

  test('isResponding returns false if the server never responds', async (t) => {
    const { port } = await startMessageServer(t, () => undefined)
    assert.equal(await isResponding(createConnection({ ...BACKEND, port }), 50), false)
  })
})

test(
  'cancelStatement cancels a running statement over TCP, a Unix socket and TLS',
  { skip: skipWithoutDebianServers },
  async (t) => {
    const tls = ['ssl=on', `ssl_cert_file='localhost.crt'`, `ssl_key_file='localhost.key'`]
    const server = await PostgresServer.start(t, tls)
    for (const config of [
      { host: '127.0.0.1' },
      { host: server.folder },
      { host: 'localhost', ssl: { ca: TLS.cert } },
    ]) {
      const client = new Client({ user: 'plants', database: 'postgres', port: server.port, ...config })
      await client.connect()
      const asleep = assert.rejects(client.query('SELECT pg_sleep(60)'), { code: '57014' })
      await server.waitForRows(
        `SELECT 1 FROM pg_stat_activity WHERE query = 'SELECT pg_sleep(60)' AND state = 'active'`,
      )
      await cancelStatement(client as unknown as Parameters<typeof cancelStatement>[0], 10_000)
      await asleep
      await client.end()
    }
  },
)
