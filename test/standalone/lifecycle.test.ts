import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type Socket } from 'node:net'
import { suite, test } from 'node:test'
import { createImportFlags, StandaloneServer, startServer } from '../support/standalone-server.ts'
import { RawConnection } from '../support/raw-connection.ts'
import { getPort, listen } from '../support/service.ts'
import { skipWithoutSqlite } from '../support/skip-reasons.ts'
import { createTempDirectory } from '../support/temp-files.ts'
import { waitUntil } from '../support/wait-until.ts'

const LIST = 'GET /plants HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer YWRh\r\n\r\n'
const HALF_CREATE =
  'POST /plants HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer YWRh\r\nContent-Type: application/json\r\nContent-Length: 22\r\n\r\n{"id":1,'

/** Sends half a request, and waits until the server has received it. */
async function beginRequest(server: StandaloneServer): Promise<RawConnection> {
  const connection = await server.connect()
  await connection.send(LIST).waitFor(/\[\]/)
  connection.received = ''
  return connection.send(HALF_CREATE)
}

suite('graceful shutdown', () => {
  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    test(`on ${signal}, answers requests in flight and exits with 0`, async (t) => {
      const server = await startServer(t)
      const connection = await beginRequest(server)
      server.child.kill(signal)
      const { connections, level } = await server.waitForLogEvent('drain')
      assert.deepEqual([connections, level], [1, 'info'])
      connection.send('"name":"Fern"}')
      assert.match(await connection.closed, /^HTTP\/1\.1 200 OK\r\n[^]*Connection: close\r\n[^]*\{"name":"Fern"\}$/)
      assert.equal(await server.exited, 0)
      assert.equal((await server.waitForLogEvent('stop'))['exitStatus'], 0)
    })
  }

  test('accepts no new connections, and closes idle ones after the keep-alive timeout', async (t) => {
    const server = await startServer(t, { PLANT_STORE_KEEP_ALIVE_TIMEOUT_MS: '500' })
    const idle = await server.connect()
    await idle.send(LIST).waitFor(/\[\]/)
    server.child.kill('SIGTERM')
    await server.waitForLogEvent('drain')
    await waitUntil(async () => (await server.connect().catch(() => undefined)) === undefined)
    assert.doesNotMatch(await idle.closed, /</)
    assert.equal(await server.exited, 0)
  })

  test('answers a request that still arrives on an open connection with Connection: close', async (t) => {
    const server = await startServer(t)
    const connection = await server.connect()
    await connection.send(LIST).waitFor(/\[\]/)
    server.child.kill('SIGTERM')
    await server.waitForLogEvent('drain')
    connection.received = ''
    assert.match(await connection.send(LIST).closed, /^HTTP\/1\.1 200 OK\r\n[^]*Connection: close\r\n[^]*\[\]$/)
    assert.equal(await server.exited, 0)
  })

  test('during the drain delay, is unready and accepts connections', async (t) => {
    const server = await startServer(t, { PLANT_STORE_DRAIN_DELAY_MS: '60000' })
    server.child.kill('SIGTERM')
    const { signal, ms } = await server.waitForLogEvent('drain-delay')
    assert.deepEqual([signal, ms], ['SIGTERM', 60_000])
    const readiness = await server.fetch('/readyz')
    assert.deepEqual(
      [readiness.status, await readiness.json()],
      [503, { error: 50300, message: 'The service is shutting down.' }],
    )
    assert.deepEqual([(await server.fetch('/livez')).status, (await server.fetch('/plants')).status], [200, 200])
  })

  test('drains after the delay', async (t) => {
    const server = await startServer(t, { PLANT_STORE_DRAIN_DELAY_MS: '100' })
    server.child.kill('SIGTERM')
    await server.waitForLogEvent('drain-delay')
    await server.waitForLogEvent('drain')
    assert.equal(await server.exited, 0)
  })

  test('exits with 1 at the deadline', async (t) => {
    const server = await startServer(t, { PLANT_STORE_DRAIN_TIMEOUT_MS: '300' })
    const connection = await beginRequest(server)
    server.child.kill('SIGTERM')
    assert.equal(await server.exited, 1)
    const { exitStatus, reason, level } = await server.waitForLogEvent('stop')
    assert.deepEqual([exitStatus, reason, level], [1, 'the shutdown took longer than 300 ms', 'error'])
    await connection.closed
  })

  for (const [first, second] of [
    ['SIGTERM', 'SIGTERM'],
    ['SIGTERM', 'SIGINT'],
    ['SIGINT', 'SIGTERM'],
  ] as const) {
    test(`exits with 1 on ${second} after ${first}`, async (t) => {
      const server = await startServer(t)
      const connection = await beginRequest(server)
      server.child.kill(first)
      await server.waitForLogEvent('drain')
      server.child.kill(second)
      assert.equal(await server.exited, 1)
      const { reason, connections } = await server.waitForLogEvent('stop')
      assert.deepEqual([reason, connections], [`received a second signal, ${second}`, 1])
      await connection.closed
    })
  }

  test('counts two SIGINT within a second as one', async (t) => {
    const server = await startServer(t)
    const connection = await beginRequest(server)
    server.child.kill('SIGINT')
    await server.waitForLogEvent('drain')
    server.child.kill('SIGINT')
    connection.send('"name":"Fern"}')
    assert.match(await connection.closed, /\{"name":"Fern"\}$/)
    assert.equal(await server.exited, 0)
  })

  test('works with the largest accepted timeouts, without warnings', async (t) => {
    const names = ['DRAIN', 'HEADERS', 'REQUEST', 'KEEP_ALIVE', 'STALL', 'STORE']
    const timeouts = names.map((name) => [`PLANT_STORE_${name}_TIMEOUT_MS`, '2147483647'])
    const server = await startServer(t, Object.fromEntries(timeouts) as Record<string, string>)
    const connection = await server.connect()
    await connection.send(LIST).waitFor(/\[\]/)
    connection.socket.end()
    await connection.closed
    server.child.kill('SIGTERM')
    assert.equal(await server.exited, 0)
    assert.deepEqual(
      server.stderr.lines.filter((line) => line.includes('warning')),
      [],
    )
  })
})

suite('the process', () => {
  test('exits with 0 on a signal before it listens', async (t) => {
    // A database server that never responds: the store waits for it before the server listens.
    const database = createServer()
    await listen(database)
    t.after(() => void database.close())
    const url = `postgres://user:password@127.0.0.1:${getPort(database)}/plants`
    const server = new StandaloneServer({ PORT: '0', PLANT_STORE_WEB_UI: '0', PLANT_STORE_URL: url })
    t.after(() => server.stop())
    const [connection] = (await Promise.race([once(database, 'connection'), server.exited])) as [Socket]
    t.after(() => connection.destroy())
    server.child.kill('SIGTERM')
    assert.deepEqual([await server.exited, server.stdout.lines, server.stderr.lines], [0, [], []])
  })

  test('logs a crash and exits with 1', async (t) => {
    const crash = "process.on('SIGUSR2', () => { throw new Error('a defect', { cause: new Error('its cause') }) })"
    const server = await StandaloneServer.start({}, createImportFlags(crash))
    t.after(() => server.stop())
    server.child.kill('SIGUSR2')
    assert.equal(await server.exited, 1)
    const { level, reason, exitStatus } = await server.waitForLogEvent('crash')
    assert.deepEqual([level, exitStatus], ['error', 1])
    assert.match(String(reason), /^Error: a defect\n[^]*caused by Error: its cause\n/)
  })

  test('survives the exit of the process that reads its output', async (t) => {
    const server = await startServer(t, { PLANT_STORE_ACCESS_LOG: '1' })
    server.child.stderr.destroy()
    server.child.stdout.destroy()
    for (let i = 0; i < 3; i++) assert.equal((await server.fetch('/plants')).status, 200)
    const exited = once(server.child, 'exit')
    server.child.kill('SIGTERM')
    assert.deepEqual(await exited, [0, null])
  })

  test('logs warnings as JSON, except about experimental features', async (t) => {
    const warn =
      "process.on('SIGUSR2', () => { process.emitWarning('a', 'ExperimentalWarning'); process.emitWarning('b') })"
    const server = await StandaloneServer.start({}, createImportFlags(warn))
    t.after(() => server.stop())
    server.child.kill('SIGUSR2')
    assert.equal((await server.waitForLogEvent('warning'))['reason'], 'Warning: b')
    for (const line of server.stderr.lines) JSON.parse(line)
  })

  test('keeps plants in a SQLite file over a restart', { skip: skipWithoutSqlite }, async (t) => {
    const environment = { PLANT_STORE_URL: `sqlite:${createTempDirectory(t)}/plants.db` }
    const first = await startServer(t, environment)
    await first.fetch('/plants', { method: 'POST', body: '{"id":1,"name":"Fern"}' })
    first.child.kill('SIGTERM')
    assert.equal(await first.exited, 0)
    const second = await startServer(t, environment)
    assert.equal(await (await second.fetch('/plants')).text(), '[{"name":"Fern"}]')
  })
})
