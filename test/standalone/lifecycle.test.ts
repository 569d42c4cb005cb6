import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { createServer } from 'node:net'
import { suite, test, type TestContext } from 'node:test'
import { DrainLoad } from '../support/program/drain-load.ts'
import { createImportFlags, Program, startProgram, TOKEN } from '../support/program/program.ts'
import { skipWithoutNetworkNamespace } from '../support/skip-reasons.ts'
import { findFreePort } from '../support/wire/find-free-port.ts'
import type { RawConnection } from '../support/wire/raw-connection.ts'
import { listen, getPort } from '../support/wire/service.ts'
import { createDatabasePath, skipWithoutSqlite } from '../support/database/sqlite-file.ts'
import { waitUntil } from '../support/wait-until.ts'

const FIELDS = `Host: plants\r\nAuthorization: Bearer ${TOKEN}\r\n`
const LIST = `GET /plants HTTP/1.1\r\n${FIELDS}\r\n`
const POST = `POST /plants HTTP/1.1\r\n${FIELDS}Content-Type: application/json\r\n`

/** Sends a request on a new connection. */
async function sendGet(program: Program, path: string): Promise<string> {
  const connection = await program.connect()
  return connection.send(`GET ${path} HTTP/1.1\r\n${FIELDS}Connection: close\r\n\r\n`).closed
}

for (const signal of ['SIGTERM', 'SIGINT'] as const) {
  test(`${signal} stops an idle standalone server immediately with status 0`, async (t) => {
    const program = await startProgram(t)
    program.child.kill('SIGUSR1')
    assert.match(await sendGet(program, '/livez'), /^HTTP\/1.1 200 /)
    program.child.kill(signal)
    assert.equal(await program.exited, 0)
    const { connections } = await program.waitForLogEvent('drain')
    const { exitStatus } = await program.waitForLogEvent('stop')
    assert.deepEqual({ connections, exitStatus }, { connections: 0, exitStatus: 0 })
    assert.doesNotMatch(program.stderr.lines.join(), /drain-delay|Debugger/)
  })
}

test('SIGTERM stops the standalone server with status 0 even before the database connection is established', async (t) => {
  const server = createServer()
  const asked = once(server, 'connection')
  await listen(server)
  t.after(() => server.close())
  const program = new Program({ PLANT_STORE_URL: `postgres://ada:secret@127.0.0.1:${getPort(server)}/plants` })
  t.after(() => program.stop())
  await asked
  program.child.kill('SIGTERM')
  assert.equal(await program.exited, 0)
  assert.equal((await program.waitForLogEvent('stop'))['exitStatus'], 0)
  assert.deepEqual(program.stdout.lines, [])
})

suite('a drain with a request in flight', () => {
  /** Starts a program and sends it half of a request. */
  async function startBusy(t: TestContext, environment = {}): Promise<{ program: Program; inFlight: RawConnection }> {
    const program = await startProgram(t, environment)
    const inFlight = (await program.connect()).send(`${POST}Content-Length: 100\r\n\r\n{`)
    assert.match(await sendGet(program, '/readyz'), /^HTTP\/1.1 200 [^]*{"status":"ready"}$/)
    program.child.kill('SIGTERM')
    await program.waitForLogEvent('drain')
    return { program, inFlight }
  }

  test('the standalone server completes the request while /readyz returns 503', async (t) => {
    const { program, inFlight } = await startBusy(t)
    assert.match(
      await sendGet(program, '/readyz'),
      /^HTTP\/1.1 503 [^]*Retry-After: 1\r\n[^]*{"error":50300,"message":"The service is shutting down."}$/,
    )
    assert.match(await sendGet(program, '/livez'), /^HTTP\/1.1 200 [^]*{"status":"live"}$/)

    inFlight.send('"id":1,"name":"Fern"}'.padEnd(99))
    assert.match(await inFlight.closed, /^HTTP\/1.1 200 OK\r\n[^]*Connection: close\r\n[^]*{"name":"Fern"}$/)
    assert.equal(await program.exited, 0)
  })

  test('a second signal stops the standalone server immediately with status 1', async (t) => {
    const { program } = await startBusy(t)
    program.child.kill('SIGTERM')
    assert.equal(await program.exited, 1)
    assert.equal((await program.waitForLogEvent('stop'))['reason'], 'received a second signal, SIGTERM')
  })

  test('the standalone server exits with status 1 at the drain timeout', async (t) => {
    const { program } = await startBusy(t, { PLANT_STORE_DRAIN_TIMEOUT_MS: '300' })
    assert.equal(await program.exited, 1)
    const { reason, connections } = await program.waitForLogEvent('stop')
    assert.deepEqual([reason, connections], ['the shutdown took longer than 300 ms', 1])
  })
})

test('the standalone server keeps serving requests during the drain delay while /readyz returns 503', async (t) => {
  const program = await startProgram(t, { PLANT_STORE_DRAIN_DELAY_MS: '1000' })
  const kept = await program.connect()
  await kept.send(LIST).waitFor(/\[\]$/)
  program.child.kill('SIGTERM')
  const { signal, ms } = await program.waitForLogEvent('drain-delay')
  assert.deepEqual({ signal, ms }, { signal: 'SIGTERM', ms: 1000 })
  assert.match(await sendGet(program, '/readyz'), /^HTTP\/1.1 503 [^]*"The service is shutting down."}$/)
  await kept.send(LIST).waitFor(/(HTTP\/1.1 200 OK\r\n[^]*Connection: keep-alive\r\n[^]*\[\]){2}$/)

  const { connections } = await program.waitForLogEvent('drain')
  assert.equal(connections, 1)
  assert.match(await kept.send(LIST).closed, /\[\]HTTP\/1.1 200 OK\r\n[^]*Connection: close\r\n[^]*\[\]$/)
  assert.equal(await program.exited, 0)
})

test('a drain under load completes the requests of all accepted connections', async (t) => {
  // The system resets connections that arrive between the last accept and the close of the socket. This test counts them,
  // because ports may be reused and so don't identify a connection.
  const log = `import { subscribe } from 'node:diagnostics_channel'
    subscribe('net.server.socket', () => console.error('accepted'))`
  // With a drain timeout shorter than the default, not all clients would finish.
  const program = await Program.start({}, createImportFlags(log))
  t.after(() => program.stop())
  const load = new DrainLoad(program.port, 24)
  await load.waitForProgress(24 * 5)
  program.child.kill('SIGTERM')
  assert.equal(await program.exited, 0)
  await load.finished
  const accepted = program.stderr.lines.filter((line) => line === 'accepted').length
  assert.ok(load.failures.length <= load.connectionCount - accepted, load.failures.join())
})

for (const [what, code] of [
  ['an uncaught exception', `throw new Error('a fault')`],
  ['an unhandled rejection', `Promise.reject(new Error('a fault'))`],
]) {
  test(`${what} is logged in the last line and stops the standalone server with status 1`, async () => {
    const fault = `process.on('SIGWINCH', () => { ${code!} })`
    const program = await Program.start({}, createImportFlags(fault))
    program.child.kill('SIGWINCH')
    assert.equal(await program.exited, 1)
    const { exitStatus, reason } = await program.waitForLogEvent('crash')
    assert.equal(exitStatus, 1)
    assert.match(String(reason), /^Error: a fault\n {4}at /)
    assert.match(program.stderr.lines.at(-1)!, /"event":"crash"/)
  })
}

test('an unreachable Postgres server is logged again only when the reason changes', async (t) => {
  let tries = 0
  const server = createServer((socket) => {
    tries++
    socket.once('data', () => socket.end())
  })
  t.after(() => server.close())
  await listen(server)
  const program = await startProgram(t, {
    PLANT_STORE_URL: `postgres://ada:secret@127.0.0.1:${getPort(server)}/plants`,
  })
  await waitUntil(() => tries >= 4)
  const reasons = program.stderr.lines
    .map((line) => JSON.parse(line) as Record<string, string>)
    .flatMap(({ event, reason }) => (event === 'unreachable' ? [reason] : []))
  assert.ok(reasons.length > 0)
  assert.ok(reasons.every((reason, i) => reason !== reasons[i - 1]))
})

test('the standalone server closes its store when it stops', { skip: skipWithoutSqlite }, async (t) => {
  const path = createDatabasePath(t)
  const program = await startProgram(t, { PLANT_STORE_URL: `sqlite:${path}` })
  const connection = await program.connect()
  const plant = '{"id":1,"name":"Fern"}'
  await connection.send(`${POST}Connection: close\r\nContent-Length: ${plant.length}\r\n\r\n${plant}`).closed
  assert.equal(existsSync(`${path}-wal`), true)
  program.child.kill('SIGTERM')
  assert.equal(await program.exited, 0)
  assert.equal(existsSync(`${path}-wal`), false)
})

test(
  'the standalone server closes its store even if a signal arrives before the server starts listening',
  { skip: skipWithoutSqlite },
  async (t) => {
    const path = createDatabasePath(t)
    const wait = `import { Server } from 'node:net'
    Server.prototype.listen = function () { process.kill(process.pid, 'SIGTERM'); return this }`
    const program = new Program({ PLANT_STORE_URL: `sqlite:${path}` }, [], createImportFlags(wait))
    t.after(() => program.stop())
    assert.equal(await program.exited, 0)
    assert.deepEqual([existsSync(path), existsSync(`${path}-wal`)], [true, false])
  },
)

for (const [what, way, needs] of [
  ['lost when a new process takes over a shared port', '--migrate', skipWithoutSqlite || skipWithoutNetworkNamespace],
  ['lost or refused when a new process inherits the socket from systemd', '--systemd', skipWithoutSqlite],
] as const) {
  test(`no request is ${what}`, { skip: needs }, () => {
    const args = ['test/manual/drains.ts', '--handover', way, '--cycles', '1', '--clients', '8']
    execFileSync(process.execPath, [...process.execArgv, ...args], { encoding: 'utf8' })
  })
}

test(
  'a second process on a shared port exits with status 1 if its admin port is in use',
  { skip: skipWithoutSqlite },
  async (t) => {
    const environment = {
      PORT: String(await findFreePort()),
      PLANT_STORE_URL: `sqlite:${createDatabasePath(t)}`,
      PLANT_STORE_REUSE_PORT: '1',
      PLANT_STORE_ADMIN_PORT: String(await findFreePort()),
    }
    await startProgram(t, environment)
    const second = new Program(environment)
    t.after(() => second.stop())
    await assert.rejects(second.waitUntilServing(), /PLANT_STORE_ADMIN_PORT must be a free port on HOST; \d+ is in use/)
    assert.equal(await second.exited, 1)
  },
)
