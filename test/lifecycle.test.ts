import assert from 'node:assert/strict'
import { once } from 'node:events'
import { Agent, request, type IncomingMessage } from 'node:http'
import { suite, test } from 'node:test'
import { parseArgs } from 'node:util'
import { startProgram, TOKEN, type Program } from './program.ts'

// By hand, with more drains and another store:
//   node --import tsx test/lifecycle.test.ts --cycles=20 --store=sqlite:x.db
const { values: options } = parseArgs({
  options: { cycles: { type: 'string', default: '3' }, store: { type: 'string', default: 'memory:' } },
})

const FIELDS = `Host: plants\r\nAuthorization: Bearer ${TOKEN}\r\n`
const LIST = `GET /plants HTTP/1.1\r\n${FIELDS}\r\n`
const POST = `POST /plants HTTP/1.1\r\n${FIELDS}Content-Type: application/json\r\n`
const UNFINISHED = `${POST}Content-Length: 100\r\n\r\n{`

/** Asks on a connection of its own. */
async function ask(program: Program, path: string): Promise<string> {
  const connection = await program.connect()
  return connection.send(`GET ${path} HTTP/1.1\r\n${FIELDS}Connection: close\r\n\r\n`).closed
}

for (const signal of ['SIGTERM', 'SIGINT'] as const) {
  test(`${signal} ends a program without connections at once, with status 0`, async (t) => {
    const program = await startProgram(t)
    program.child.kill(signal)
    assert.equal(await program.ended, 0)
    const { connections } = await program.logged('drain')
    const { status } = await program.logged('stop')
    assert.deepEqual({ connections, status }, { connections: 0, status: 0 })
  })
}

suite('while a request is in flight', () => {
  test('the program is alive but not ready, and each answer closes its connection', async (t) => {
    const program = await startProgram(t)
    const inFlight = await program.connect()
    inFlight.send(UNFINISHED)
    assert.match(await ask(program, '/readyz'), /^HTTP\/1.1 200 [^]*{"status":"ready"}$/)

    program.child.kill('SIGTERM')
    await program.logged('drain')
    assert.match(
      await ask(program, '/readyz'),
      /^HTTP\/1.1 503 [^]*Retry-After: 1\r\n[^]*{"error":50300,"message":"The service is shutting down."}$/,
    )
    assert.match(await ask(program, '/livez'), /^HTTP\/1.1 200 [^]*{"status":"live"}$/)

    inFlight.send('"id":1,"name":"Fern"}'.padEnd(99))
    assert.match(await inFlight.closed, /^HTTP\/1.1 200 OK\r\n[^]*Connection: close\r\n[^]*{"name":"Fern"}$/)
    assert.equal(await program.ended, 0)
  })

  test('a second signal cuts it and ends the program at once, with status 1', async (t) => {
    const program = await startProgram(t)
    const inFlight = await program.connect()
    inFlight.send(UNFINISHED)
    assert.match(await ask(program, '/readyz'), /^HTTP\/1.1 200 [^]*{"status":"ready"}$/)
    program.child.kill('SIGTERM')
    await program.logged('drain')
    program.child.kill('SIGTERM')
    assert.equal(await program.ended, 1)
    const { reason } = await program.logged('stop')
    assert.equal(reason, 'a second signal, SIGTERM')
  })

  test('the deadline cuts it and ends the program with status 1', async (t) => {
    const program = await startProgram(t, { PLANT_STORE_DRAIN_TIMEOUT_MS: '300' })
    const inFlight = await program.connect()
    inFlight.send(UNFINISHED)
    assert.match(await ask(program, '/readyz'), /^HTTP\/1.1 200 [^]*{"status":"ready"}$/)
    program.child.kill('SIGTERM')
    assert.equal(await program.ended, 1)
    const { reason, connections } = await program.logged('stop')
    assert.deepEqual([reason, connections], ['300 ms were not enough', 1])
  })
})

test('connections that wait for a request do not keep the program from ending with status 0', async (t) => {
  const program = await startProgram(t, {
    PLANT_STORE_DRAIN_TIMEOUT_MS: '1000',
    PLANT_STORE_KEEP_ALIVE_TIMEOUT_MS: '60000',
  })
  const idle = await program.connect()
  await idle.send(LIST).receive(/\[\]$/)
  program.child.kill('SIGTERM')
  assert.equal(await program.ended, 0)
})

test('a drain under load loses no request', async (t) => {
  for (let cycle = 1; cycle <= Number(options.cycles); cycle++) {
    const program = await startProgram(t, { PLANT_STORE_URL: options.store })
    const load = startLoad(program)
    await load.isWarm
    program.child.kill('SIGTERM')
    assert.deepEqual(await load.failures, [])
    assert.equal(await program.ended, 0)
  }
})

/** 24 clients that each keep a connection busy, until an answer tells them to close it. */
function startLoad(program: Program): { isWarm: Promise<unknown>; failures: Promise<string[]> } {
  // A store that keeps plants has those of earlier drains.
  const firstId = BigInt(Date.now()) * 1_000_000n
  let sent = 0
  let answers = 0
  let warm: () => void
  const isWarm = new Promise<void>((resolve) => (warm = resolve))

  async function client(): Promise<string | undefined> {
    const agent = new Agent({ keepAlive: true, maxSockets: 1 })
    try {
      for (;;) {
        const { statusCode, headers } = await send(agent, program.port, firstId + BigInt(sent++))
        if (statusCode !== 200) return `status ${statusCode}`
        if (++answers === 24 * 20) warm()
        if (headers.connection === 'close') return undefined
      }
    } catch (error) {
      return String(error)
    } finally {
      agent.destroy()
    }
  }

  const clients = Array.from({ length: 24 }, client)
  return { isWarm, failures: Promise.all(clients).then((ends) => ends.filter((end) => end !== undefined)) }
}

async function send(agent: Agent, port: number, id: bigint): Promise<IncomingMessage> {
  const headers = { Authorization: `Bearer ${TOKEN}`, 'Content-Type': 'application/json' }
  const sent = request({ agent, host: '127.0.0.1', port, method: 'POST', path: '/plants', headers })
  const [response] = (await once(sent.end(`{"id":${id},"name":"Fern"}`), 'response')) as [IncomingMessage]
  await once(response.resume(), 'end')
  return response
}
