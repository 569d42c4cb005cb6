import '../support/fakeable-timers.ts'
import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import process from 'node:process'
import { suite, test, type TestContext } from 'node:test'
import { setImmediate } from 'node:timers/promises'
import type { PlantStoreOptions } from '../../src/index.ts'
import { createHttpServer, type HttpServer } from '../../src/http-server/http-server.ts'
import { cpuTimeSince } from '../support/cpu-time.ts'
import { triggerOverloadGuard } from '../support/program/test-listener.ts'
import { createService, serve as serveUntilEnd } from '../support/wire/service.ts'
import { connectPair, RawConnection } from '../support/wire/raw-connection.ts'
import { waitUntil } from '../support/wait-until.ts'

const OPTIONS = 'OPTIONS /plants HTTP/1.1\r\nHost: a\r\n\r\n'

const LIST = 'GET /plants HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ada\r\n\r\n'

/** Remains the real function when a test mocks `performance.now`. */
const now = performance.now.bind(performance)

/** With mocked intervals, the guard checks the event loop only when a test advances the clock. */
async function serve(t: TestContext, options?: Partial<PlantStoreOptions>): Promise<HttpServer> {
  t.mock.timers.enable({ apis: ['setInterval'] })
  const http = createHttpServer(createService(options))
  await serveUntilEnd(t, http.server)
  return http
}

suite('the overload guard', () => {
  for (const [what, phases, clientCount, isActive] of [
    ['activates after consecutive long ticks', [work, work], 2, true],
    ['remains inactive after single long ticks', [work, rest, work], 2, false],
    ['remains inactive with a single client', [work, work], 1, false],
    ['remains inactive if ticks are long without using CPU time', [rest, rest], 2, false],
  ] as const) {
    test(what, async (t) => {
      const http = await serve(t)
      for (let client = 0; client < clientCount; client++) await connectPair(http.server)
      t.mock.timers.tick(100)
      for (const runPhase of phases) {
        runPhase()
        t.mock.timers.tick(100)
      }
      assert.equal(http.isThrottled(), isActive)
    })
  }

  test('the overload guard activates in the middle of a long tick', async (t) => {
    const http = await serve(t, { authenticate: () => (work(), 'ada') })
    const clients = await Promise.all([1, 2, 3, 4].map(() => RawConnection.open(http.server)))
    await Promise.all(clients.map((client) => client.send(LIST).readStatuses(1)))
    assert.ok(http.isThrottled())
  })

  test('the overload guard counts a long tick only once, even if both a request and the timer detect it', async (t) => {
    let clockMs = 0
    t.mock.method(performance, 'now', () => clockMs)
    const http = await serve(t, {
      authenticate() {
        work(21)
        clockMs += 21
        t.mock.timers.tick(100)
        return 'ada'
      },
    })
    const { client } = await connectPair(http.server)
    await connectPair(http.server)
    clockMs += 100
    t.mock.timers.tick(100)
    work(210)
    clockMs += 210
    await client.send(LIST).readStatuses(1)
    assert.ok(!http.isThrottled())
  })

  /** Uses `ms` milliseconds of CPU time. Measures only once per millisecond, to spend them in user mode. */
  function work(ms = 210): void {
    const before = process.cpuUsage()
    const startedAt = now()
    do for (const until = now() + 1; now() < until;);
    while (cpuTimeSince(before) < 1000 * ms || now() < startedAt + ms)
  }

  /** Blocks the event loop without using CPU time. */
  function rest(): void {
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 210)
  }
})

suite('connections that are open when the overload guard activates', { timeout: 60_000 }, () => {
  test('the rest of a body is read in slices of at most 1,024 bytes', async (t) => {
    const http = await serve(t)
    const { client, accepted } = await connectPair(http.server)
    const body = `{"id":1,"name":"${'x'.repeat(50_000)}"}`
    const fields = `Host: a\r\nAuthorization: Bearer ada\r\nContent-Type: application/json\r\nContent-Length: ${body.length}`
    const arrived = once(http.server, 'request')
    client.send(`POST /plants HTTP/1.1\r\n${fields}\r\n\r\n${body.slice(0, 10_000)}`)
    await arrived
    await triggerOverloadGuard(http.server)
    const slices: number[] = []
    accepted.on('data', ({ length }: Buffer) => slices.push(length))
    assert.deepEqual(await client.send(body.slice(10_000) + OPTIONS.repeat(100)).readStatuses(101), [
      200,
      ...Array<number>(100).fill(204),
    ])
    assert.ok(slices.length > 1 && Math.max(...slices) <= 1024, String(slices))
  })

  for (const [what, length, first, rest, statuses] of [
    ['with a queued request', 0, OPTIONS, OPTIONS, [400, 204, 204]],
    ['with an unread body', 90_000, ' '.repeat(80_000), ' '.repeat(10_000), [400]],
  ] as const) {
    test(`a connection ${what} continues to be read after the response`, async (t) => {
      let acceptToken: (owner: string) => void = () => undefined
      const authenticate = (): Promise<string> => new Promise((resolve) => (acceptToken = resolve))
      const http = await serve(t, { authenticate, maxBodyBytes: length + 1 })
      const { client, accepted } = await connectPair(http.server)
      const arrived = once(http.server, 'request') as Promise<[IncomingMessage]>
      const fields = `Host: a\r\nAuthorization: Bearer ada\r\nContent-Type: application/json\r\nContent-Length: ${length}`
      const responses = client.send(`POST /plants HTTP/1.1\r\n${fields}\r\n\r\n${first}`).readResponses(statuses.length)
      const [request] = await arrived
      await waitUntil(() => accepted.isPaused() || request.readableLength >= request.readableHighWaterMark)
      await triggerOverloadGuard(http.server)
      acceptToken('ada')
      client.send(rest)
      assert.deepEqual(
        (await responses).map(({ status }) => status),
        statuses,
      )
    })
  }
})

for (const when of ['before', 'after']) {
  test(`the overload guard leaves the bytes of a connection upgraded ${when} the guard's activation to the upgrade listener`, async (t) => {
    const http = await serve(t)
    if (when === 'after') await triggerOverloadGuard(http.server)
    const upgrading = once(http.server, 'upgrade') as Promise<[unknown, Socket]>
    const client = await RawConnection.open(http.server)
    const head = 'GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n'
    client.send(head)
    const [, socket] = await upgrading
    if (when === 'before') await triggerOverloadGuard(http.server)
    client.send('ribbit')
    await waitUntil(() => socket.bytesRead === head.length + 6)
    for (let tick = 0; tick < 2; tick++) await setImmediate()
    const read = String(socket.read())
    socket.destroy()
    assert.deepEqual([http.isThrottled(), read], [true, 'ribbit'])
  })
}

test("an upgraded connection delivers its buffered bytes to a 'readable' listener while the overload guard is active", async (t) => {
  const http = await serve(t)
  await triggerOverloadGuard(http.server)
  const received: string[] = []
  const upgrading = once(http.server, 'upgrade') as Promise<[unknown, Socket]>
  http.server.on('upgrade', (_, socket: Socket, head: Buffer) => {
    received.push(head.toString())
    socket.on('readable', () => {
      for (let chunk; (chunk = socket.read() as Buffer | null) !== null;) received.push(chunk.toString())
    })
  })
  const client = await RawConnection.open(http.server)
  const bytes = 'ribbit'.repeat(500)
  client.send(`GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n${bytes}`)
  const [, upgraded] = await upgrading
  await waitUntil(() => received.join('') === bytes)
  // Otherwise closing the server would wait for this connection.
  upgraded.destroy()
})
