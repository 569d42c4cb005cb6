import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { suite, test, type TestContext } from 'node:test'
import { createPlantStore, memoryStore, type Store } from '../../src/index.ts'
import type { Limits } from '../../src/http-server/limits.ts'
import { createHttpServer, type HttpServer } from '../../src/http-server/http-server.ts'
import { delegatingStore } from '../support/database/delegating-store.ts'
import { heapUsed } from '../support/heap.ts'
import { Held } from '../support/held.ts'
import { startProgram } from '../support/program/program.ts'
import { openBoth, RawConnection } from '../support/wire/raw-connection.ts'
import { serve as serveUntilEnd } from '../support/wire/service.ts'
import { until } from '../support/until.ts'

const AUTHORIZED = 'Host: plants\r\nAuthorization: Bearer YWRh\r\n'
const LIST = `GET /plants HTTP/1.1\r\n${AUTHORIZED}\r\n`
const DELETE = LIST.replace('GET /plants', 'DELETE /plants/1')
const POST = `POST /plants HTTP/1.1\r\n${AUTHORIZED}Content-Type: application/json\r\n`
const PLANT = '{"id":1,"name":"Fern"}'

/** The end of a header whose body takes long if it comes byte by byte. */
const LONG = 'Content-Length: 1000\r\n\r\n'

/** Serves plants with the token of ada. */
async function serve(t: TestContext, limits: Partial<Limits> = {}, store: Store = memoryStore()): Promise<HttpServer> {
  const http = createHttpServer(createPlantStore({ tokens: { YWRh: 'ada' }, store }), limits)
  await serveUntilEnd(t, http.server)
  return http
}

/** A store whose first delete waits. */
function holdDelete(): { readonly held: Held<boolean>; readonly store: Store } {
  const held = new Held<boolean>()
  return { held, store: delegatingStore(memoryStore(), { delete: () => held.call() }) }
}

/** Asserts that the connection brought an error as its only answer, and that it was closed and not reset. */
async function assertRefused({ closed }: RawConnection, error: number, message: string): Promise<void> {
  const body = JSON.stringify({ error, message })
  const [head, received] = (await closed).split('\r\n\r\n') as [string, string]
  const [statusLine, ...fields] = head.split('\r\n')
  assert.equal(received, body)
  assert.match(statusLine!, new RegExp(`^HTTP/1\\.1 ${Math.trunc(error / 100)} [A-Z]`))
  assert.match(head, /^Date: \w{3}, [^\r]+ GMT$/m)
  assert.deepEqual(fields.filter((field) => !field.startsWith('Date: ')).sort(), [
    'Cache-Control: no-store',
    'Connection: close',
    `Content-Length: ${body.length}`,
    'Content-Type: application/json',
  ])
}

suite('what node:http refuses is answered with an error', () => {
  const malformed = 'The request is malformed.'
  const tooMany = 'The request has too many header fields, or too large ones.'
  const unmet = 'The only expectation that is met here is 100-continue.'
  for (const [name, request, error, message] of [
    ['no HTTP', 'plants, please\r\n\r\n', 40000, malformed],
    ['a malformed chunk', `${POST}Transfer-Encoding: chunked\r\n\r\nfive\r\n`, 40000, malformed],
    ['a header over the limit', LIST.replace('Host', `X: ${'x'.repeat(20_000)}\r\nHost`), 43100, tooMany],
    ['no Host', LIST.replace('Host: plants\r\n', ''), 40000, 'The request has no Host field.'],
    ['an unknown expectation', LIST.replace('Host', 'Expect: rain\r\nHost'), 41700, unmet],
    ['a Host that is none', LIST.replace('Host: plants', 'Host: a b'), 40000, 'The Host field is not a host.'],
    ['two Hosts', LIST.replace('Host', 'Host: b\r\nHost'), 40000, 'The request has more than one Host field.'],
    ['two expectations', LIST.replace('Host', 'Expect: 100-continue, rain\r\nHost'), 41700, unmet],
    ['a word that contains 100-continue', LIST.replace('Host', 'Expect: x-100-continue\r\nHost'), 41700, unmet],
    ['an empty Host', LIST.replace('Host: plants', 'Host:'), 40000, 'The Host field is not a host.'],
    ['CONNECT', 'CONNECT plants:80 HTTP/1.1\r\nHost: plants\r\n\r\n', 40000, 'This service is no proxy.'],
  ] as const) {
    test(name, async (t) => {
      const connection = await RawConnection.open((await serve(t)).server)
      await assertRefused(connection.send(request), error, message)
    })
  }

  for (const [count, rest] of [
    [1000, 'HTTP/1.1 200 '],
    [1001, 'HTTP/1.1 200 '],
    // Node 22 and later refuse what goes beyond the fields that they keep.
    [3000, ''],
  ] as const) {
    test(`${count} fields, none of which is dropped${rest && ', and the connection goes on'}`, async (t) => {
      const connection = await RawConnection.open((await serve(t)).server)
      connection.send(`GET /plants HTTP/1.1\r\n${'X:\r\n'.repeat(count - 2)}${AUTHORIZED}\r\n${LIST}`)
      await connection.receive(new RegExp(`^HTTP/1.1 431 [^]*"error":43100[^}]*}${rest}`))
    })
  }

  test('a client that goes on sending sees the error, and has a second to do so', async (t) => {
    const { client, accepted } = await openBoth((await serve(t)).server)
    const startedAt = performance.now()
    const cut = once(accepted, 'close')
    client.send('plants, please\r\n\r\n')
    for (let i = 0; i < 10; i++) client.send('x'.repeat(100_000))
    await client.receive(/"error":40000,[^}]*}$/)
    await cut
    const elapsed = performance.now() - startedAt
    assert.ok(elapsed > 900 && elapsed < 5000, `${elapsed} ms`)
  })

  test('clients that are refused at once keep no more than 100 connections', async (t) => {
    const http = await serve(t)
    const clients = await Promise.all(Array.from({ length: 150 }, () => RawConnection.open(http.server)))
    await until(() => http.connectionCount() === 150)
    for (const client of clients) client.send('BAD\r\n\r\n')
    for (const client of clients) await client.receive(/"error":40000,/)
    assert.ok(http.connectionCount() <= 100, `${http.connectionCount()} are open`)
  })
})

suite('a process with --insecure-http-parser', { timeout: 60_000 }, () => {
  for (const [name, request] of [
    [
      'a Content-Length next to a Transfer-Encoding',
      `${POST}Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`,
    ],
    ['a control character in a header value', LIST.replace('Host', 'X: \x01\r\nHost')],
  ] as const) {
    test(`rejects ${name} on both ports`, async (t) => {
      const environment = { NODE_OPTIONS: '--insecure-http-parser', PLANT_STORE_ADMIN_PORT: '0' }
      const program = await startProgram(t, environment)
      const { admin } = await program.logged('start')
      for (const port of [program.port, Number(new URL(String(admin)).port)]) {
        const connection = await RawConnection.open(port)
        assert.match(await connection.send(request).closed, /^HTTP\/1\.1 400 [^]*"error":40000,[^}]*}$/)
      }
    })
  }
})

for (const state of ['while it serves', 'while it drains']) {
  suite(`a slow client is dropped in time ${state}`, { timeout: 60_000 }, () => {
    const limits = { headersTimeoutMs: 100, requestTimeoutMs: 200, keepAliveTimeoutMs: 100, checkIntervalMs: 20 }
    const asking = `GET /plants HTTP/1.1\r\n${AUTHORIZED}${LONG}`
    const anonymous = `POST /plants HTTP/1.1\r\nHost: plants\r\n${LONG}`
    const late = /^HTTP\/1.1 408 [^]*"error":40800[^}]*}$/
    for (const [name, begun, next, received] of [
      ['that sends nothing', '', '', /^$/],
      ['that asks no more', LIST, '', /^HTTP\/1.1 200 [^]*\[\]$/],
      ['that sends its header byte by byte', 'GET /plants HTTP/1.1\r\nX: ', 'x', late],
      ['that sends its body byte by byte', `${POST}${LONG}`, ' ', late],
      ['that is answered and sends its body byte by byte', asking, ' ', /^HTTP\/1.1 200 [^]*\r\n\r\n\[\]$/],
      ['that is refused and sends its body all the same', anonymous, ' ', /^HTTP\/1.1 401 [^]*"error":40100[^}]*}$/],
    ] as const) {
      test(name, async (t) => {
        const http = await serve(t, limits)
        const { client, accepted } = await openBoth(http.server)
        const dropped = once(accepted, 'close')
        if (state === 'while it drains') void http.drain()
        client.send(begun)
        const drip = setInterval(() => client.send(next), 20)
        t.after(() => clearInterval(drip))
        assert.match(await client.closed, received)
        await dropped
      })
    }
  })
}

test('an idle connection closes 1 s after its time is over', async (t) => {
  const { client, accepted } = await openBoth((await serve(t, { keepAliveTimeoutMs: 60_000 })).server)
  await client.send(LIST).receive(/^Keep-Alive: timeout=60\r\n[^]*\[\]$/m)
  // The client may have its response before the server has finished with it.
  await until(() => accepted.timeout === 61_000)
})

suite('a request that is late because those before it held it back gets its time once more:', () => {
  const options = 'OPTIONS /plants HTTP/1.1\r\nHost: a\r\n\r\n'
  const post = `${POST}Content-Length: ${PLANT.length}\r\n\r\n`
  const limits = { headersTimeoutMs: 100, requestTimeoutMs: 300, checkIntervalMs: 10 }
  for (const [what, begun, rest, answer] of [
    ['a header', options + options.slice(0, 10), options.slice(10), /(HTTP\/1.1 204 [^]*){2}$/],
    ['a body', post, PLANT, /{"name":"Fern"}$/],
  ] as const) {
    test(`${what} that comes then is not held against its connection, and one that does not is refused`, async (t) => {
      const { held, store } = holdDelete()
      const http = await serve(t, limits, store)
      const late = new Set<unknown>()
      http.server.on('clientError', (_, socket) => late.add(socket))
      const [connection, later] = [await RawConnection.open(http.server), await RawConnection.open(http.server)]
      for (const { socket } of [connection, later]) socket.write(DELETE + begun)
      await until(() => late.size === 2)
      connection.send(rest)
      held.answer(false)
      await connection.receive(answer)
      // The time of the one that came first is over before.
      assert.match(await later.closed, /"error":40800[^}]*}$/)
      assert.match(await connection.send(options.replace('Host', 'Connection: close\r\nHost')).closed, /204 [^{]*$/)
    })
  }

  test('a body whose header was late so is refused if it is late as well', async (t) => {
    const { held, store } = holdDelete()
    const http = await serve(t, limits, store)
    const connection = await RawConnection.open(http.server)
    const late = once(http.server, 'clientError')
    connection.send(DELETE + options + post.slice(0, -2))
    await late
    held.answer(false)
    assert.deepEqual(await connection.send('\r\n{').statuses(), [404, 204, 408])
  })
})

suite('Expect: 100-continue is not met', () => {
  const expecting = `${POST}Expect: 100-continue\r\n`
  for (const [name, request, answer] of [
    ['with no token', `${expecting.replace(/Authorization.*\r\n/, '')}Content-Length: 9\r\n\r\n`, /401 [^]*40100/],
    ['with a wrong Content-Type', `${expecting.replace(/json/, 'x')}Content-Length: 9\r\n\r\n`, /415 [^]*41500/],
    ['with a Content-Length over the limit', `${expecting}Content-Length: 65537\r\n\r\n`, /413 [^]*41300/],
    ['where there is no body', `GET /plants HTTP/1.1\r\n${AUTHORIZED}Expect: 100-continue\r\n\r\n`, /200 [^]*\[\]$/],
  ] as const) {
    test(name, async (t) => {
      const connection = await RawConnection.open((await serve(t)).server)
      await connection.send(request).receive(new RegExp(`^HTTP/1.1 ${answer.source}`))
    })
  }
})

test('of a request that was answered, an idle connection keeps nothing', { timeout: 60_000 }, async (t) => {
  const answered: WeakRef<object>[] = []
  function answer(request: IncomingMessage, response: ServerResponse): void {
    answered.push(new WeakRef(request), new WeakRef(response))
    response.end()
  }
  const { server } = createHttpServer(answer, { keepAliveTimeoutMs: 600_000 })
  await serveUntilEnd(t, server)
  const client = await RawConnection.open(server)
  await client.send('GET / HTTP/1.1\r\nHost: a\r\n\r\n').receive(/\r\n\r\n/)
  await until(() => heapUsed() > 0 && answered.every((reference) => reference.deref() === undefined))
})
