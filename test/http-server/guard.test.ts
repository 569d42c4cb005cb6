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
import { wakeGuard } from '../support/program/standalone-server.ts'
import { createService, serve as serveUntilEnd } from '../support/wire/service.ts'
import { openBoth, RawConnection } from '../support/wire/raw-connection.ts'
import { until } from '../support/until.ts'

const OPTIONS = 'OPTIONS /plants HTTP/1.1\r\nHost: a\r\n\r\n'

const LIST = 'GET /plants HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ada\r\n\r\n'

/** The guard looks at the event loop only when a test says so. */
async function serve(t: TestContext, options?: Partial<PlantStoreOptions>): Promise<HttpServer> {
  t.mock.timers.enable({ apis: ['setInterval'] })
  const http = createHttpServer(createService(options))
  await serveUntilEnd(t, http.server)
  return http
}

suite('the guard looks at the event loop', () => {
  for (const [what, rounds, clients, isAwake] of [
    ['wakes if its rounds are long again and again', [work, work], 2, true],
    ['sleeps on if one of them is', [work, rest, work], 2, false],
    ['sleeps on if there is but one client', [work, work], 1, false],
    ['sleeps on if the machine is busy', [rest, rest], 2, false],
  ] as const) {
    test(`and ${what}`, async (t) => {
      const http = await serve(t)
      for (let client = 0; client < clients; client++) await openBoth(http.server)
      t.mock.timers.tick(100)
      for (const round of rounds) {
        round()
        t.mock.timers.tick(100)
      }
      assert.equal(http.isGuarded(), isAwake)
    })
  }

  test('and wakes in the middle of a long round', async (t) => {
    const http = await serve(t, { authenticate: () => (work(), 'ada') })
    const clients = await Promise.all([1, 2, 3, 4].map(() => RawConnection.open(http.server)))
    await Promise.all(clients.map((client) => client.send(LIST).statuses(1)))
    assert.ok(http.isGuarded())
  })

  test('and sleeps on if a request has looked at the same long round a moment ago', async (t) => {
    let sentAt = 0
    let moment = Infinity
    function authenticate(): string {
      work(21)
      t.mock.timers.tick(100)
      // From before the request has looked: on a busy machine, time goes by between any two steps.
      moment = performance.now() - sentAt
      return 'ada'
    }
    // And the moment may be too long.
    while (moment >= 49) {
      const http = await serve(t, { authenticate })
      const { client } = await openBoth(http.server)
      await openBoth(http.server)
      t.mock.timers.tick(100)
      work()
      sentAt = performance.now()
      await client.send(LIST).statuses(1)
      t.mock.timers.reset()
      assert.ok(moment >= 49 || !http.isGuarded())
    }
  })

  /** Takes so many milliseconds of the processor, most for itself and not for the system to measure them. */
  function work(ms = 210): void {
    const before = process.cpuUsage()
    const startedAt = performance.now()
    do for (const until = performance.now() + 1; performance.now() < until;);
    while (cpuTimeSince(before) < 1000 * ms || performance.now() < startedAt + ms)
  }

  function rest(): void {
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 210)
  }
})

suite('when the guard wakes, a connection is read in slices', { timeout: 60_000 }, () => {
  test('that is half-way through a body, which comes whole', async (t) => {
    const http = await serve(t)
    const { client, accepted } = await openBoth(http.server)
    const body = `{"id":1,"name":"${'x'.repeat(50_000)}"}`
    const fields = `Host: a\r\nAuthorization: Bearer ada\r\nContent-Type: application/json\r\nContent-Length: ${body.length}`
    const arrived = once(http.server, 'request')
    client.send(`POST /plants HTTP/1.1\r\n${fields}\r\n\r\n${body.slice(0, 10_000)}`)
    await arrived
    await wakeGuard(http.server)
    const slices: number[] = []
    accepted.on('data', ({ length }: Buffer) => slices.push(length))
    assert.deepEqual(await client.send(body.slice(10_000) + OPTIONS.repeat(100)).statuses(101), [
      200,
      ...Array<number>(100).fill(204),
    ])
    assert.ok(slices.length > 1 && Math.max(...slices) <= 1024, String(slices))
  })

  for (const [what, length, first, rest, statuses] of [
    ['whose next request waits', 0, OPTIONS, OPTIONS, [400, 204, 204]],
    ['whose body nobody reads yet', 90_000, ' '.repeat(80_000), ' '.repeat(10_000), [400]],
  ] as const) {
    test(`${what}, and read on`, async (t) => {
      let letIn: (owner: string) => void = () => undefined
      const authenticate = (): Promise<string> => new Promise((resolve) => (letIn = resolve))
      const http = await serve(t, { authenticate, maxBodyBytes: length + 1 })
      const { client, accepted } = await openBoth(http.server)
      const arrived = once(http.server, 'request') as Promise<[IncomingMessage]>
      const fields = `Host: a\r\nAuthorization: Bearer ada\r\nContent-Type: application/json\r\nContent-Length: ${length}`
      const answers = client.send(`POST /plants HTTP/1.1\r\n${fields}\r\n\r\n${first}`).answers(statuses.length)
      const [request] = await arrived
      await until(() => accepted.isPaused() || request.readableLength >= request.readableHighWaterMark)
      await wakeGuard(http.server)
      letIn('ada')
      client.send(rest)
      assert.deepEqual(
        (await answers).map(({ status }) => status),
        statuses,
      )
    })
  }
})

for (const when of ['before', 'while']) {
  test(`the guard reads nothing of a connection that was upgraded ${when} it is awake`, async (t) => {
    const http = await serve(t)
    if (when === 'while') await wakeGuard(http.server)
    const upgrading = once(http.server, 'upgrade') as Promise<[unknown, Socket]>
    const client = await RawConnection.open(http.server)
    const head = 'GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n'
    client.send(head)
    const [, socket] = await upgrading
    if (when === 'before') await wakeGuard(http.server)
    client.send('ribbit')
    await until(() => socket.bytesRead === head.length + 6)
    for (let round = 0; round < 2; round++) await setImmediate()
    const read = String(socket.read())
    socket.destroy()
    assert.deepEqual([http.isGuarded(), read], [true, 'ribbit'])
  })
}

test('hands the rest of an upgraded connection to a readable listener while the guard is awake', async (t) => {
  const http = await serve(t)
  await wakeGuard(http.server)
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
  await until(() => received.join('') === bytes)
  // The server of the test waits for it.
  upgraded.destroy()
})
