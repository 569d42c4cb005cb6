import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { suite, test, type TestContext } from 'node:test'
import { createPlantStore, memoryStore, type Store } from '../../src/index.ts'
import type { Limits } from '../../src/http-server/limits.ts'
import { createHttpServer, type HttpServer } from '../../src/http-server/http-server.ts'
import { overrideStore } from '../support/database/override-store.ts'
import { measureHeapUsed } from '../support/memory-usage.ts'
import { DeferredCall } from '../support/deferred-call.ts'
import { startProgram } from '../support/program/program.ts'
import { connectPair, RawConnection } from '../support/wire/raw-connection.ts'
import { serve as serveUntilEnd } from '../support/wire/service.ts'
import { waitUntil } from '../support/wait-until.ts'

const AUTHORIZED = 'Host: plants\r\nAuthorization: Bearer YWRh\r\n'
const LIST = `GET /plants HTTP/1.1\r\n${AUTHORIZED}\r\n`
const DELETE = LIST.replace('GET /plants', 'DELETE /plants/1')
const POST = `POST /plants HTTP/1.1\r\n${AUTHORIZED}Content-Type: application/json\r\n`
const PLANT = '{"id":1,"name":"Fern"}'

/** The end of a header with a body that takes long to arrive byte by byte. */
const LONG_BODY_FIELDS = 'Content-Length: 1000\r\n\r\n'

async function serve(t: TestContext, limits: Partial<Limits> = {}, store: Store = memoryStore()): Promise<HttpServer> {
  const http = createHttpServer(createPlantStore({ tokens: { YWRh: 'ada' }, store }), limits)
  await serveUntilEnd(t, http.server)
  return http
}

/** Returns a store whose deletes wait until `deferred` settles. */
function deferDelete(): { readonly deferred: DeferredCall<boolean>; readonly store: Store } {
  const deferred = new DeferredCall<boolean>()
  return { deferred, store: overrideStore(memoryStore(), { delete: () => deferred.call() }) }
}

/** Asserts that an error was the only response on a connection, and that the connection was closed without a reset. */
async function assertRejected({ closed }: RawConnection, error: number, message: string): Promise<void> {
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

suite('a request that node:http rejects', () => {
  const malformed = 'The request is malformed.'
  const tooMany = 'The request has too many header fields, or they are too large.'
  const unmet = 'The only supported expectation is 100-continue.'
  for (const [name, request, error, message] of [
    ['without HTTP syntax', 'plants, please\r\n\r\n', 40000, malformed],
    ['with a malformed chunk', `${POST}Transfer-Encoding: chunked\r\n\r\nfive\r\n`, 40000, malformed],
    ['with a header over the size limit', LIST.replace('Host', `X: ${'x'.repeat(20_000)}\r\nHost`), 43100, tooMany],
    ['without a Host field', LIST.replace('Host: plants\r\n', ''), 40000, 'The request has no Host field.'],
    ['with an unknown Expect value', LIST.replace('Host', 'Expect: rain\r\nHost'), 41700, unmet],
    [
      'with an invalid Host field',
      LIST.replace('Host: plants', 'Host: a b'),
      40000,
      'The Host field is not a valid host.',
    ],
    [
      'with two Host fields',
      LIST.replace('Host', 'Host: b\r\nHost'),
      40000,
      'The request has more than one Host field.',
    ],
    ['with two Expect values', LIST.replace('Host', 'Expect: 100-continue, rain\r\nHost'), 41700, unmet],
    [
      'with an Expect value that only contains 100-continue',
      LIST.replace('Host', 'Expect: x-100-continue\r\nHost'),
      41700,
      unmet,
    ],
    ['with an empty Host field', LIST.replace('Host: plants', 'Host:'), 40000, 'The Host field is not a valid host.'],
    [
      'with the method CONNECT',
      'CONNECT plants:80 HTTP/1.1\r\nHost: plants\r\n\r\n',
      40000,
      'This server is not a proxy.',
    ],
  ] as const) {
    test(`${name} results in ${error}`, async (t) => {
      const connection = await RawConnection.open((await serve(t)).server)
      await assertRejected(connection.send(request), error, message)
    })
  }

  for (const [count, rest] of [
    [1000, 'HTTP/1.1 200 '],
    [1001, 'HTTP/1.1 200 '],
    // Node 22 and later reject requests with more fields than they keep.
    [3000, ''],
  ] as const) {
    test(`with ${count} header fields results in 431${rest && ' and an open connection'}`, async (t) => {
      const connection = await RawConnection.open((await serve(t)).server)
      connection.send(`GET /plants HTTP/1.1\r\n${'X:\r\n'.repeat(count - 2)}${AUTHORIZED}\r\n${LIST}`)
      await connection.waitFor(new RegExp(`^HTTP/1.1 431 [^]*"error":43100[^}]*}${rest}`))
    })
  }

  test('a rejected connection stays open for a second, so that the client can read the error', async (t) => {
    const { client, accepted } = await connectPair((await serve(t)).server)
    const startedAt = performance.now()
    const closed = once(accepted, 'close')
    client.send('plants, please\r\n\r\n')
    for (let i = 0; i < 10; i++) client.send('x'.repeat(100_000))
    await client.waitFor(/"error":40000,[^}]*}$/)
    await closed
    const elapsed = performance.now() - startedAt
    assert.ok(elapsed > 900 && elapsed < 5000, `${elapsed} ms`)
  })

  test('a rejected connection is closed immediately if 100 others are still open', async (t) => {
    const http = await serve(t)
    const clients = await Promise.all(Array.from({ length: 150 }, () => RawConnection.open(http.server)))
    await waitUntil(() => http.connectionCount() === 150)
    for (const client of clients) client.send('BAD\r\n\r\n')
    for (const client of clients) await client.waitFor(/"error":40000,/)
    assert.ok(http.connectionCount() <= 100, `${http.connectionCount()} connections are open`)
  })
})

suite('the standalone server with --insecure-http-parser', { timeout: 60_000 }, () => {
  for (const [name, request] of [
    [
      'Content-Length together with Transfer-Encoding',
      `${POST}Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`,
    ],
    ['a control character in a header value', LIST.replace('Host', 'X: \x01\r\nHost')],
  ] as const) {
    test(`rejects ${name} on its main and admin ports`, async (t) => {
      const environment = { NODE_OPTIONS: '--insecure-http-parser', PLANT_STORE_ADMIN_PORT: '0' }
      const program = await startProgram(t, environment)
      const { admin } = await program.waitForLogEvent('start')
      for (const port of [program.port, Number(new URL(String(admin)).port)]) {
        const connection = await RawConnection.open(port)
        assert.match(await connection.send(request).closed, /^HTTP\/1\.1 400 [^]*"error":40000,[^}]*}$/)
      }
    })
  }
})

for (const state of ['normal operation', 'a drain']) {
  suite(`timeouts during ${state}`, { timeout: 60_000 }, () => {
    const limits = { headersTimeoutMs: 100, requestTimeoutMs: 200, keepAliveTimeoutMs: 100, checkIntervalMs: 20 }
    const asking = `GET /plants HTTP/1.1\r\n${AUTHORIZED}${LONG_BODY_FIELDS}`
    const anonymous = `POST /plants HTTP/1.1\r\nHost: plants\r\n${LONG_BODY_FIELDS}`
    const late = /^HTTP\/1.1 408 [^]*"error":40800[^}]*}$/
    for (const [name, begun, next, received] of [
      ['a client that sends nothing', '', '', /^$/],
      ['a client that sends no further request', LIST, '', /^HTTP\/1.1 200 [^]*\[\]$/],
      ['a client that sends its header byte by byte', 'GET /plants HTTP/1.1\r\nX: ', 'x', late],
      ['a client that sends its body byte by byte', `${POST}${LONG_BODY_FIELDS}`, ' ', late],
      [
        'a client that gets a response and then sends its body byte by byte',
        asking,
        ' ',
        /^HTTP\/1.1 200 [^]*\r\n\r\n\[\]$/,
      ],
      [
        'a client that is rejected but continues to send its body byte by byte',
        anonymous,
        ' ',
        /^HTTP\/1.1 401 [^]*"error":40100[^}]*}$/,
      ],
    ] as const) {
      test(name, async (t) => {
        const http = await serve(t, limits)
        const { client, accepted } = await connectPair(http.server)
        const dropped = once(accepted, 'close')
        if (state === 'a drain') void http.drain()
        client.send(begun)
        const drip = setInterval(() => client.send(next), 20)
        t.after(() => clearInterval(drip))
        assert.match(await client.closed, received)
        await dropped
      })
    }
  })
}

test('the server keeps an idle connection for 1 s longer than its Keep-Alive header announces', async (t) => {
  const { client, accepted } = await connectPair((await serve(t, { keepAliveTimeoutMs: 60_000 })).server)
  await client.send(LIST).waitFor(/^Keep-Alive: timeout=60\r\n[^]*\[\]$/m)
  // The client may receive the response before the server sets the timeout.
  await waitUntil(() => accepted.timeout === 61_000)
})

suite('a request that is late because of a slow earlier request', () => {
  const options = 'OPTIONS /plants HTTP/1.1\r\nHost: a\r\n\r\n'
  const post = `${POST}Content-Length: ${PLANT.length}\r\n\r\n`
  const limits = { headersTimeoutMs: 100, requestTimeoutMs: 300, checkIntervalMs: 10 }
  for (const [what, begun, rest, response] of [
    ['its header', options + options.slice(0, 10), options.slice(10), /(HTTP\/1.1 204 [^]*){2}$/],
    ['its body', post, PLANT, /{"name":"Fern"}$/],
  ] as const) {
    test(`can complete ${what} after the response to the earlier request`, async (t) => {
      const { deferred: held, store } = deferDelete()
      const http = await serve(t, limits, store)
      const late = new Set<unknown>()
      http.server.on('clientError', (_, socket) => late.add(socket))
      const [connection, later] = [await RawConnection.open(http.server), await RawConnection.open(http.server)]
      for (const { socket } of [connection, later]) socket.write(DELETE + begun)
      await waitUntil(() => late.size === 2)
      connection.send(rest)
      held.resolve(false)
      await connection.waitFor(response)
      // By now, the original timeout of the first connection has passed, too.
      assert.match(await later.closed, /"error":40800[^}]*}$/)
      assert.match(await connection.send(options.replace('Host', 'Connection: close\r\nHost')).closed, /204 [^{]*$/)
    })
  }

  test('a delayed request is rejected with 408 if its body is also late', async (t) => {
    const { deferred: held, store } = deferDelete()
    const http = await serve(t, limits, store)
    const connection = await RawConnection.open(http.server)
    const late = once(http.server, 'clientError')
    connection.send(DELETE + options + post.slice(0, -2))
    await late
    held.resolve(false)
    assert.deepEqual(await connection.send('\r\n{').readStatuses(), [404, 204, 408])
  })
})

suite('the server responds without sending 100 Continue first', () => {
  const expecting = `${POST}Expect: 100-continue\r\n`
  for (const [name, request, response] of [
    [
      'if the request has no token',
      `${expecting.replace(/Authorization.*\r\n/, '')}Content-Length: 9\r\n\r\n`,
      /401 [^]*40100/,
    ],
    ['if the Content-Type is wrong', `${expecting.replace(/json/, 'x')}Content-Length: 9\r\n\r\n`, /415 [^]*41500/],
    ['if the Content-Length exceeds the limit', `${expecting}Content-Length: 65537\r\n\r\n`, /413 [^]*41300/],
    [
      'if the request has no body',
      `GET /plants HTTP/1.1\r\n${AUTHORIZED}Expect: 100-continue\r\n\r\n`,
      /200 [^]*\[\]$/,
    ],
  ] as const) {
    test(name, async (t) => {
      const connection = await RawConnection.open((await serve(t)).server)
      await connection.send(request).waitFor(new RegExp(`^HTTP/1.1 ${response.source}`))
    })
  }
})

test('an idle connection retains no request or response in memory', { timeout: 60_000 }, async (t) => {
  const messages: WeakRef<object>[] = []
  function respond(request: IncomingMessage, response: ServerResponse): void {
    messages.push(new WeakRef(request), new WeakRef(response))
    response.end()
  }
  const { server } = createHttpServer(respond, { keepAliveTimeoutMs: 600_000 })
  await serveUntilEnd(t, server)
  const client = await RawConnection.open(server)
  await client.send('GET / HTTP/1.1\r\nHost: a\r\n\r\n').waitFor(/\r\n\r\n/)
  await waitUntil(() => measureHeapUsed() > 0 && messages.every((reference) => reference.deref() === undefined))
})
