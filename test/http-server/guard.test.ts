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
import { createService, close, listen } from '../support/wire/service.ts'
import { openBoth, RawConnection } from '../support/wire/raw-connection.ts'
import { until } from '../support/until.ts'

const OPTIONS = 'OPTIONS /plants HTTP/1.1\r\nHost: a\r\n\r\n'

const LIST = 'GET /plants HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ada\r\n\r\n'

interface Guarded extends HttpServer {
  /** What the guard has said so far. */
  readonly said: readonly boolean[]
}

/** The guard looks at the event loop only when a test says so. */
async function serve(t: TestContext, guardMs?: number, options?: Partial<PlantStoreOptions>): Promise<Guarded> {
  t.mock.timers.enable({ apis: ['setInterval'] })
  const said: boolean[] = []
  const limits = guardMs === undefined ? {} : { guardMs }
  const http = createHttpServer(createService(options), limits, undefined, { onGuard: (isAwake) => said.push(isAwake) })
  await listen(http.server)
  t.after(() => close(http.server))
  return { ...http, said }
}

async function pipeline(client: RawConnection, count: number): Promise<void> {
  const answers = await client.send(OPTIONS.repeat(count)).answers(count)
  assert.deepEqual(new Set(answers.map(({ status }) => status)), new Set([204]))
}

test('the guard sleeps while at most 100 requests wait on all connections, and wakes if there are more', async (t) => {
  const held: ((owner: string) => void)[] = []
  const http = await serve(t, undefined, { authenticate: () => new Promise<string>((resolve) => held.push(resolve)) })
  let announced = 0
  http.server.on('request', () => announced++)
  /** The first of the requests runs, and is held. */
  async function hold(count: number): Promise<RawConnection> {
    const before = announced
    const client = await RawConnection.open(http.server)
    client.send(LIST.repeat(count))
    await until(() => announced === before + count)
    return client
  }
  for (let lost = 0; lost < 3; lost++) {
    const { socket } = await hold(61)
    socket.resetAndDestroy()
    held.pop()!('ada')
    await until(() => http.connectionCount() === 0)
  }
  for (let client = 0; client < 5; client++) await hold(21)
  assert.deepEqual([http.isGuarded(), http.said], [false, []])
  await hold(2)
  assert.deepEqual([http.isGuarded(), http.said], [true, [true]])
})

suite('the guard looks at the event loop', () => {
  type Round = () => void
  const rows: readonly (readonly [what: string, rounds: readonly Round[], clients: number, isAwake: boolean])[] = [
    ['wakes if its rounds are long again and again', [work, work], 2, true],
    ['sleeps on if one of them is', [work, rest, work], 2, false],
    ['sleeps on if there is but one client', [work, work], 1, false],
    ['sleeps on if the machine is busy', [rest, rest], 2, false],
  ]
  for (const [what, rounds, clients, isAwake] of rows) {
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
    let announced = 0
    const http = await serve(t, undefined, { authenticate: () => ((announced += 1), work(), 'ada') })
    const clients = await Promise.all([1, 2, 3, 4].map(() => openBoth(http.server)))
    const statuses = clients.map(({ client }) => client.send(LIST).statuses(1))
    await Promise.all(statuses)
    assert.equal(announced, 4)
    assert.ok(http.isGuarded())
  })

  /** Takes 210 ms of the processor, most of them for itself and not for the system to measure them. */
  function work(): void {
    const before = process.cpuUsage()
    const startedAt = performance.now()
    do for (const until = performance.now() + 5; performance.now() < until;);
    while (cpuTimeSince(before) < 210_000 || performance.now() < startedAt + 210)
  }

  function rest(): void {
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 210)
  }
})

test('the guard sleeps again after its time, and wakes anew', async (t) => {
  const http = await serve(t, 20)
  await pipeline(await RawConnection.open(http.server), 300)
  await until(() => !http.isGuarded())
  await pipeline(await RawConnection.open(http.server), 300)
  await until(() => !http.isGuarded())
  assert.deepEqual(http.said, [true, false, true, false])
})

suite('when the guard wakes, a connection is read in slices', () => {
  test('that is idle', async (t) => {
    const http = await serve(t)
    const { client, accepted } = await openBoth(http.server)
    await pipeline(await RawConnection.open(http.server), 102)
    const slices: number[] = []
    accepted.on('data', ({ length }: Buffer) => slices.push(length))
    await pipeline(client, 200)
    assert.ok(slices.length > 1 && Math.max(...slices) <= 1024, String(slices))
  })

  test('that is half-way through a body, which comes whole', async (t) => {
    const http = await serve(t)
    const { client, accepted } = await openBoth(http.server)
    const body = `{"id":1,"name":"${'x'.repeat(50_000)}"}`
    const fields = `Host: a\r\nAuthorization: Bearer ada\r\nContent-Type: application/json\r\nContent-Length: ${body.length}`
    const arrived = once(http.server, 'request')
    client.send(`POST /plants HTTP/1.1\r\n${fields}\r\n\r\n${body.slice(0, 10_000)}`)
    await arrived
    await pipeline(await RawConnection.open(http.server), 102)
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
    test(`${what}, and read on`, { timeout: 60_000 }, async (t) => {
      let letIn: (owner: string) => void = () => undefined
      const authenticate = (): Promise<string> => new Promise((resolve) => (letIn = resolve))
      const http = await serve(t, undefined, { authenticate, maxBodyBytes: length + 1 })
      const { client, accepted } = await openBoth(http.server)
      const arrived = once(http.server, 'request') as Promise<[IncomingMessage]>
      const fields = `Host: a\r\nAuthorization: Bearer ada\r\nContent-Type: application/json\r\nContent-Length: ${length}`
      const answers = client.send(`POST /plants HTTP/1.1\r\n${fields}\r\n\r\n${first}`).answers(statuses.length)
      const [request] = await arrived
      await until(() => accepted.isPaused() || request.readableLength >= request.readableHighWaterMark)
      await pipeline(await RawConnection.open(http.server), 102)
      letIn('ada')
      client.send(rest)
      assert.deepEqual(
        (await answers).map(({ status }) => status),
        statuses,
      )
    })
  }

  test('that comes then', async (t) => {
    const http = await serve(t)
    await pipeline(await RawConnection.open(http.server), 102)
    const { client, accepted } = await openBoth(http.server)
    assert.ok(accepted.listenerCount('readable') > 0)
    await pipeline(client, 1)
  })
})

for (const when of ['before', 'while']) {
  test(`the guard reads nothing of a connection that was upgraded ${when} it is awake`, async (t) => {
    const http = await serve(t)
    const wake = async (): Promise<void> => pipeline(await RawConnection.open(http.server), 102)
    if (when === 'while') await wake()
    const upgrading = once(http.server, 'upgrade') as Promise<[unknown, Socket]>
    const client = await RawConnection.open(http.server)
    const head = 'GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n'
    client.send(head)
    const [, socket] = await upgrading
    if (when === 'before') await wake()
    client.send('ribbit')
    await until(() => socket.bytesRead === head.length + 6)
    for (let round = 0; round < 2; round++) await setImmediate()
    const read = String(socket.read())
    socket.destroy()
    assert.deepEqual([http.isGuarded(), read], [true, 'ribbit'])
  })
}
