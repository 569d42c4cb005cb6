// A database server with a long round-trip time, and one whose DNS servers don't respond.
import assert from 'node:assert/strict'
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { suite, test, type TestContext } from 'node:test'
import { Program, startProgram } from '../../support/program/program.ts'
import { skipWithoutMountNamespace } from '../../support/skip-reasons.ts'
import { createTempFile } from '../../support/temp-files.ts'
import { waitUntil } from '../../support/wait-until.ts'
import { skipWithoutDebianServers, PostgresServer } from '../../support/wire/debian-servers.ts'
import { startMessageServer } from '../../support/wire/message-server.ts'
import { openTcpProxy } from '../../support/wire/tcp-proxy.ts'

const create = async (program: Program, id: number) => {
  const { status } = await program.fetch('/plants', { method: 'POST', body: `{"id":${id},"name":"Fern"}` })
  return status
}

suite(
  'the standalone server with a distant database server',
  { skip: skipWithoutDebianServers, timeout: 120_000 },
  () => {
    /** Starts a server that requires TLS and SCRAM, behind a proxy that adds this round-trip time. Returns its URL. */
    async function startFarServer(t: TestContext, roundTripMs: number) {
      const tls = ['ssl=on', `ssl_cert_file='localhost.crt'`, `ssl_key_file='localhost.key'`]
      const server = await PostgresServer.start(t, tls)
      await server.query(`CREATE ROLE clerk SUPERUSER LOGIN PASSWORD 'secret'`)
      const rows = ['hostssl all clerk 127.0.0.1/32 scram-sha-256', 'host all plants 127.0.0.1/32 trust']
      writeFileSync(join(server.data, 'pg_hba.conf'), `${rows.join('\n')}\n`)
      await server.runPgCtl('reload')
      const proxy = await openTcpProxy({ host: '127.0.0.1', port: server.port }, roundTripMs / 2)
      t.after(() => proxy.close())
      return `postgres://clerk:secret@127.0.0.1:${proxy.port}/postgres?sslmode=require`
    }

    test('creates plants with a round-trip time of 340 ms, TLS, SCRAM and channel binding', async (t) => {
      const url = await startFarServer(t, 340)
      assert.equal(await new Program({ PLANT_STORE_URL: url }, ['--migrate']).exited, 0)
      const program = await startProgram(t, { PLANT_STORE_URL: `${url}&channel_binding=require&connect_timeout=10` })
      await program.waitUntilReady()
      assert.equal(await create(program, 1), 200)
    })

    test('remains ready with a round-trip time of 600 ms', async (t) => {
      const program = await startProgram(t, { PLANT_STORE_URL: await startFarServer(t, 600) })
      await program.waitUntilReady()
      let id = 0
      let isDone = false
      async function keepCreating() {
        while (!isDone) assert.equal(await create(program, id++), 200)
      }
      const creating = keepCreating()
      // A single write may take too long on a busy machine.
      let inSuccession = 0
      try {
        await waitUntil(async () => {
          const { status } = await program.fetch('/readyz')
          inSuccession = status === 200 ? inSuccession + 1 : 0
          return inSuccession >= 3 && id >= 3
        })
      } finally {
        isDone = true
        await creating
      }
    })
  },
)

suite('channel_binding=require', { skip: skipWithoutDebianServers }, () => {
  for (const [name, sslmode, method] of [
    ['requests a plaintext password', 'require', 'password'],
    ['requests an MD5 hash', 'require', 'md5'],
    ['requires no authentication', 'require', 'trust'],
    ['does not use TLS', 'disable', 'scram-sha-256'],
  ] as const) {
    test(`never sends the password to a server that ${name}`, async (t) => {
      const tls = ['ssl=on', `ssl_cert_file='localhost.crt'`, `ssl_key_file='localhost.key'`, 'log_connections=on']
      const encryption = method === 'md5' ? ['password_encryption=md5'] : []
      const server = await PostgresServer.start(t, [...tls, ...encryption])
      await server.query(`CREATE ROLE clerk SUPERUSER LOGIN PASSWORD 'secret'`)
      writeFileSync(join(server.data, 'pg_hba.conf'), `host all clerk 127.0.0.1/32 ${method}\n`)
      await server.runPgCtl('reload')
      const url = `postgres://clerk:secret@127.0.0.1:${server.port}/postgres?sslmode=${sslmode}`
      const program = await startProgram(t, { PLANT_STORE_URL: `${url}&channel_binding=require` })
      const { reason } = await program.waitForLogEvent('unreachable')
      assert.match(String(reason), /did not use channel binding, but channel_binding=require is set/)
      const other = await startProgram(t, { PLANT_STORE_URL: `${url}&channel_binding=prefer` })
      await other.waitUntilReady()
    })
  }
})

test('--migrate reports the connection timeout if the server never responds', { timeout: 60_000 }, async (t) => {
  const { port } = await startMessageServer(t, () => undefined)
  const environment = {
    PLANT_STORE_URL: `postgres://ada@127.0.0.1:${port}/plants`,
    PLANT_STORE_STORE_TIMEOUT_MS: '1000',
  }
  const program = new Program(environment, ['--migrate'])
  assert.equal(await program.exited, 1)
  const problem = 'cannot use the store at PLANT_STORE_URL: No connection to the database within 1000 ms.'
  assert.deepEqual(program.stderr.lines, [`plant-store: ${problem}`])
})

suite('unresponsive DNS servers', { skip: skipWithoutMountNamespace, timeout: 120_000 }, () => {
  /** Starts a program whose DNS server never responds. Its resolver retries for 20 s. */
  async function startWithoutNames(t: TestContext, environment: Readonly<Record<string, string>> = {}) {
    const socket = createSocket('udp4')
    t.after(() => socket.close())
    let questions = 0
    socket.on('message', () => questions++).bind(53, '127.0.0.87')
    await once(socket, 'listening')
    const file = createTempFile(t, 'nameserver 127.0.0.87\noptions timeout:10 attempts:2\n')
    const url = 'postgres://ada@database.test/plants'
    const prelude = `exec unshare -m sh -c 'mount --bind ${file} /etc/resolv.conf && exec "$@"' sh "$@"`
    const program = await startProgram(t, { PLANT_STORE_URL: url, ...environment }, { prelude })
    await waitUntil(() => questions > 0)
    return program
  }

  test('a second signal ends the standalone server immediately even while a DNS server does not respond', async (t) => {
    const program = await startWithoutNames(t)
    program.child.kill('SIGTERM')
    await program.waitForLogEvent('drain')
    const startedAt = performance.now()
    program.child.kill('SIGTERM')
    await program.exited
    assert.ok(performance.now() - startedAt < 3000)
    assert.equal(program.child.signalCode, 'SIGTERM')
  })

  test('the standalone server exits at its drain timeout even while a DNS server does not respond', async (t) => {
    const program = await startWithoutNames(t, { PLANT_STORE_DRAIN_TIMEOUT_MS: '1000' })
    program.child.kill('SIGTERM')
    const startedAt = performance.now()
    await program.exited
    assert.ok(performance.now() - startedAt < 5000)
    assert.match(String((await program.waitForLogEvent('stop'))['reason']), /longer than 1000 ms/)
  })
})
