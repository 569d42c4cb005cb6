import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { IncomingMessage } from 'node:http'
import { suite, test, type TestContext } from 'node:test'
import type { PlantStoreOptions } from '../../src/index.ts'
import { createHttpServer, type HttpServer } from '../../src/http-server/http-server.ts'
import { createService, close, listen } from '../support/wire/service.ts'
import { readSettings } from '../../src/standalone/settings/settings.ts'
import { openBoth, RawConnection } from '../support/wire/raw-connection.ts'
import { until } from '../support/until.ts'

const OPTIONS = 'OPTIONS /plants HTTP/1.1\r\nHost: a\r\n\r\n'

interface Guarded extends HttpServer {
  /** What the guard has said so far. */
  readonly said: readonly boolean[]
}

async function serve(t: TestContext, guardMs?: number, options?: Partial<PlantStoreOptions>): Promise<Guarded> {
  const said: boolean[] = []
  const limits = { ...readSettings({}), ...(guardMs === undefined ? {} : { guardMs }) }
  const http = createHttpServer(createService(options), limits, undefined, { onGuard: (isAwake) => said.push(isAwake) })
  await listen(http.server)
  t.after(() => close(http.server))
  return { ...http, said }
}

async function pipeline(client: RawConnection, count: number): Promise<void> {
  const answers = await client.send(OPTIONS.repeat(count)).answers(count)
  assert.deepEqual(new Set(answers.map(({ status }) => status)), new Set([204]))
}

test('the guard sleeps while at most 100 requests of a connection wait, and wakes if there are more', async (t) => {
  const http = await serve(t)
  await pipeline(await RawConnection.open(http.server), 101)
  assert.deepEqual([http.isGuarded(), http.said], [false, []])
  await pipeline(await RawConnection.open(http.server), 102)
  assert.deepEqual([http.isGuarded(), http.said], [true, [true]])
})

test('the guard sleeps while one read brings at most 100 chunks of a body, and wakes if it brings more', async (t) => {
  const http = await serve(t)
  const { client, accepted } = await openBoth(http.server)
  const fields = 'Host: a\r\nAuthorization: Bearer ada\r\nTransfer-Encoding: chunked\r\nContent-Type: application/json'
  async function sendAlone(bytes: string): Promise<void> {
    const length = accepted.bytesRead + bytes.length
    client.send(bytes)
    await until(() => accepted.bytesRead === length)
  }
  for (const chunks of [100, 101]) {
    await sendAlone(`POST /plants HTTP/1.1\r\n${fields}\r\n\r\n`)
    for (let reads = 0; reads < 3; reads++) await sendAlone('1\r\n \r\n'.repeat(chunks))
    assert.equal(http.isGuarded(), chunks > 100)
    const answers = client.answers(1)
    client.send('0\r\n\r\n')
    assert.equal((await answers)[0]!.status, 400)
  }
})

suite('the guard looks at the bytes that come', () => {
  const LOOK_MS = 100
  const NOTHING = '\r\n'.repeat(8193)
  const fields = 'Host: a\r\nAuthorization: Bearer ada\r\nContent-Type: application/json\r\n'
  const body = `{"id":1,"name":"${'x'.repeat(40_000)}"}`
  const post = `POST /plants HTTP/1.1\r\n${fields}Content-Length: ${body.length}\r\n\r\n`
  const chunk = `4000\r\n${'x'.repeat(16_384)}\r\n`
  const rows: readonly (readonly [what: string, pieces: readonly string[], isAwake: boolean])[] = [
    ['of a body that it sees in the middle', [post + body.slice(0, 100), body.slice(100), OPTIONS], false],
    ['of a body behind the response', [post.replace('POST /plants', 'DELETE /plants/2') + body, OPTIONS], false],
    [
      'of a body in chunks',
      [`${post.replace(/Content-Length.*/, 'Transfer-Encoding: chunked')}${chunk}`, chunk, chunk, '0\r\n\r\n'],
      false,
    ],
    ['of a header that is too large', [`GET / HTTP/1.1\r\nX: ${'x'.repeat(60_000)}`], false],
    ['behind CONNECT', [`CONNECT a:80 HTTP/1.1\r\nHost: a\r\n\r\n${NOTHING.repeat(3)}`], false],
    ['of empty lines, as many as a header may have', [NOTHING.slice(2)], false],
    ['of more empty lines', [NOTHING], true],
    ['of empty lines between requests', Array<string>(3).fill(NOTHING.repeat(3) + OPTIONS), true],
  ]
  for (const [what, pieces, isAwake] of rows) {
    test(`and ${isAwake ? 'wakes' : 'sleeps on'} for those ${what}`, async (t) => {
      t.mock.timers.enable({ apis: ['setInterval'] })
      const http = await serve(t)
      const { client, accepted } = await openBoth(http.server)
      for (const piece of pieces) {
        const length = accepted.bytesRead + piece.length
        client.send(piece)
        await until(() => accepted.bytesRead === length || accepted.destroyed)
        t.mock.timers.tick(LOOK_MS)
      }
      assert.equal(http.isGuarded(), isAwake)
    })
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
    assert.ok(slices.length > 1 && Math.max(...slices) <= 256, String(slices))
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
    assert.ok(Math.max(...slices) <= 256, String(slices))
  })

  for (const [what, length, first, rest, statuses] of [
    ['whose next request waits', 0, OPTIONS, OPTIONS, [400, 204, 204]],
    ['whose body nobody reads yet', 90_000, ' '.repeat(80_000), ' '.repeat(10_000), [400]],
  ] as const) {
    test(`${what}, and read on`, { timeout: 10_000 }, async (t) => {
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
