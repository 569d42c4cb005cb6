import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { setTimeout } from 'node:timers/promises'
import { memoryStore, StoreUnavailableError } from '../../src/index.ts'
import { describeError, flushLog } from '../../src/standalone/log.ts'
import { getRequestId } from '../../src/standalone/requests.ts'
import { captureLog, getValues } from '../support/program/capture-log.ts'
import { overrideStore } from '../support/database/override-store.ts'
import { DeferredCall } from '../support/deferred-call.ts'
import { sendRawRequest, serveProgram, serveWithAdmin, WRITER_TOKEN } from '../support/program/in-process-program.ts'
import { scrapeMetrics, startWithMetrics } from '../support/program/metrics.ts'
import { RawConnection } from '../support/wire/raw-connection.ts'
import { get, sendToPort } from '../support/wire/service.ts'
import { waitUntil } from '../support/wait-until.ts'
import { GENERATED_REQUEST_ID, startProgram } from '../support/program/program.ts'

const HOST = 'Host: a\r\n'
const AUTHORIZED = `${HOST}Authorization: Bearer ${WRITER_TOKEN}\r\n`
const DELETE = `DELETE /plants/1 HTTP/1.1\r\n${AUTHORIZED}\r\n`

const ACCESS_LOG_SETTINGS = { PLANT_STORE_ACCESS_LOG: '1' }

const unavailableStore = overrideStore(memoryStore(), {
  list: () => {
    throw new StoreUnavailableError('the database is away', { cause: new Error('ECONNREFUSED') })
  },
})

/** Omits the fields of a log event that vary, after checking them. */
function omitVariableFields(event: Readonly<Record<string, unknown>> | undefined): object {
  const { durationMs, remoteAddress, ...rest } = event!
  assert.ok(Number(durationMs) > 0 && Number(durationMs) < performance.now())
  assert.equal(remoteAddress, '127.0.0.1')
  return rest
}

test('a failure is logged with its reason but no client data', async (t) => {
  const events = captureLog(t)
  await sendToPort(await serveProgram(t, {}, unavailableStore), get(WRITER_TOKEN, '/plants?limit=1234567'))
  const [{ event, request, reason, count }] = events as [Record<string, unknown>]
  assert.deepEqual([events.length, event, count], [1, 'failure', 1])
  assert.match(String(request), GENERATED_REQUEST_ID)
  assert.match(String(reason), /^StoreUnavailableError: the database is away\n[^]*caused by Error: ECONNREFUSED\n/)
  assert.doesNotMatch(JSON.stringify(events), new RegExp(`${WRITER_TOKEN}|1234567`))
})

suite('repeated failures within a second', () => {
  test('failures within a second are logged as a single line that shows the latest one', async (t) => {
    const events = captureLog(t)
    const port = await serveProgram(t, {}, unavailableStore)
    const startedAt = performance.now()
    const { fields, ...list } = get(WRITER_TOKEN)
    for (const id of ['a', 'b', 'c', 'd']) await sendToPort(port, { ...list, fields: [...fields, 'X-Request-Id', id] })
    await waitUntil(() => events.length === 2)
    assert.ok(performance.now() - startedAt >= 990)
    await sendToPort(port, get(WRITER_TOKEN))
    assert.equal(events.length, 2)
    await waitUntil(() => events.length === 3)
    assert.deepEqual(getValues(events, 'count'), [1, 3, 1])
    assert.deepEqual(getValues(events, 'request').slice(0, 2), ['a', 'd'])
  })

  test('pending failures are logged immediately when the standalone server exits', async (t) => {
    const events = captureLog(t)
    const port = await serveProgram(t, {}, unavailableStore)
    for (let i = 0; i < 3; i++) await sendToPort(port, get(WRITER_TOKEN))
    await flushLog()
    assert.deepEqual(getValues(events, 'count'), [1, 2])
  })
})

test('a truncated list is logged as an incomplete response and as a failure', async (t) => {
  const events = captureLog(t)
  const plants = Array.from({ length: 1000 }, (_, i) => ({ id: BigInt(i), name: 'Fern' }))
  const store = overrideStore(memoryStore(), {
    list: (_, { after }) => (after === undefined ? { plants, hasMore: true } : Promise.reject(new Error('disk'))),
  })
  await assert.rejects(sendToPort(await serveProgram(t, ACCESS_LOG_SETTINGS, store), get(WRITER_TOKEN)), {
    code: 'ECONNRESET',
  })

  const [failure, response] = events
  assert.match(String(failure!['reason']), /^Error: disk\n/)
  const { request } = failure!
  const expected = { event: 'response', request, method: 'GET', resource: '/plants', owner: 'ada', statusCode: 200 }
  const bytes = 1000 * '{"name":"Fern"},'.length
  assert.deepEqual(omitVariableFields(response), { ...expected, bytes, complete: false })
})

test('successful and rejected requests are not logged if the access log is disabled', async (t) => {
  const events = captureLog(t)
  const port = await serveProgram(t, {})
  for (const [status, request] of [
    [200, `GET /plants HTTP/1.1\r\n${AUTHORIZED}\r\n`],
    [501, `GET /plants HTTP/1.1\r\n${HOST}Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n`],
    [400, 'no HTTP\r\n\r\n'],
  ] as const) {
    assert.equal((await sendRawRequest(port, request)).status, status)
  }
  assert.deepEqual(events, [])
})

for (const [slowMs, accessLog, logged] of [
  ['1', '0', ['slow']],
  ['1', '1', ['slow', 'response']],
  ['60000', '1', ['response']],
] as const) {
  test(`a response is logged as ${logged.join(' and ')} with PLANT_STORE_SLOW_MS=${slowMs} and PLANT_STORE_ACCESS_LOG=${accessLog}`, async (t) => {
    const events = captureLog(t)
    const store = overrideStore(memoryStore(), { delete: () => setTimeout(5, true) })
    const environment = { PLANT_STORE_SLOW_MS: slowMs, PLANT_STORE_ACCESS_LOG: accessLog }
    const { headers, body } = await sendRawRequest(await serveProgram(t, environment, store), DELETE)
    const asked = { request: headers.get('x-request-id'), method: 'DELETE', resource: '/plants/{id}', owner: 'ada' }
    const told = { ...asked, statusCode: 204, bytes: body.length, complete: true }
    assert.deepEqual(
      events.map(omitVariableFields),
      logged.map((event) => ({ event, ...told })),
    )
  })
}

suite('the access log contains exactly one line for a request', () => {
  const PREFLIGHT = `${HOST}Origin: http://a\r\nAccess-Control-Request-Method: GET\r\n`
  const GUESS = `${HOST}Authorization: Bearer guess\r\n`
  const rows: readonly [
    ...[what: string, request: string, fields: string, status: number],
    ...[resource?: string | undefined, error?: number | undefined, owner?: string],
  ][] = [
    ['a list', 'GET /plants?limit=7', AUTHORIZED, 200, '/plants', undefined, 'ada'],
    ['a rejected token', 'GET /plants/1?token=guess', GUESS, 401, '/plants/{id}', 40101],
    ['a missing Host field', 'GET /plants', '', 400, undefined, 40000],
    ['an invalid Host field', 'GET /plants', 'Host: a b\r\n', 400, undefined, 40000],
    ['an invalid Host field in a health check', 'GET /livez', 'Host: a b\r\n', 400, undefined, 40000],
    ['an invalid Host field in a HEAD request', 'HEAD /plants', 'Host: a b\r\n', 400, undefined, 40000],
    ['an unsupported Expect field', 'GET /plants', `${HOST}Expect: x\r\n`, 417, undefined, 41700],
    ['a preflight for an unknown path', 'OPTIONS /x', PREFLIGHT, 204],
    ['a preflight for a known path', 'OPTIONS /plants', PREFLIGHT, 204, '/plants'],
    ['the web UI', 'GET /', HOST, 200, '/'],
    ['a HEAD request for the web UI', 'HEAD /', HOST, 200, '/'],
    ['the OpenAPI description', 'GET /openapi.json', HOST, 200, '/openapi.json'],
    [
      'an OpenAPI description that the client has cached',
      'GET /openapi.json',
      `${HOST}If-None-Match: *\r\n`,
      304,
      '/openapi.json',
    ],
    ['an unsupported method', 'DELETE /openapi.json', HOST, 405, '/openapi.json', 40500],
    ['an unknown path', 'GET /nothing', HOST, 404, undefined, 40400],
  ]
  for (const [what, request, fields, status, resource, error, owner] of rows) {
    test(what, async (t) => {
      const events = captureLog(t)
      const port = await serveProgram(t, { ...ACCESS_LOG_SETTINGS, PLANT_STORE_CORS_ORIGINS: '*' })
      const sent = `${request} HTTP/1.1\r\n${fields}X-Request-Id: mine\r\nConnection: close\r\n\r\n`
      const [, body = ''] = (await (await RawConnection.open(port)).send(sent).closed).split('\r\n\r\n')
      // A second line for the same request would precede the line for the next request.
      await waitUntil(() => events.length > 0)
      await sendRawRequest(port, `GET /plants HTTP/1.1\r\n${HOST}\r\n`)
      await waitUntil(() => events.length > 1)
      assert.equal(events.length, 2)
      const asked = { event: 'response', request: 'mine', method: request.split(' ')[0], resource, owner }
      const expected = { ...asked, statusCode: status, errorCode: error, bytes: body.length, complete: true }
      assert.deepEqual(omitVariableFields(events[0]), JSON.parse(JSON.stringify(expected)))
    })
  }
})

test('the access log warns once about bearer tokens with invalid characters', async (t) => {
  const events = captureLog(t)
  const port = await serveProgram(t, ACCESS_LOG_SETTINGS)
  for (const token of ['unknown', '17|secret', 'id:secret', '17|secret']) {
    const { status } = await sendRawRequest(
      port,
      `GET /plants HTTP/1.1\r\n${HOST}Authorization: Bearer ${token}\r\n\r\n`,
    )
    assert.equal(status, 401)
  }
  await waitUntil(() => events.length >= 5)
  const warnings = events.filter(({ event }) => event === 'warning')
  assert.deepEqual(getValues(warnings, 'request'), [events[1]!['request']])
  assert.match(
    String(warnings[0]!['reason']),
    /^A client sent a bearer token with characters that RFC 6750 does not allow/,
  )
  assert.doesNotMatch(JSON.stringify(events), /17\|secret|id:secret/)
})

test('a bearer token with invalid characters is not logged if the access log is disabled', async (t) => {
  const events = captureLog(t)
  const port = await serveProgram(t, { PLANT_STORE_SLOW_MS: '60000' })
  await sendRawRequest(port, `GET /plants HTTP/1.1\r\n${HOST}Authorization: Bearer 17|secret\r\n\r\n`)
  assert.deepEqual(events, [])
})

test('the access log excludes health checks and requests to the admin port', async (t) => {
  const events = captureLog(t)
  const { port, admin } = await serveWithAdmin(t, ACCESS_LOG_SETTINGS)
  for (const path of ['/livez', '/readyz']) await sendRawRequest(port, `GET ${path} HTTP/1.1\r\n${HOST}\r\n`)
  for (const path of ['/livez', '/readyz', '/metrics', '/x']) await (await fetch(admin + path)).text()
  await sendRawRequest(port, `GET /plants HTTP/1.1\r\n${HOST}\r\n`)
  await waitUntil(() => events.length > 0)
  assert.deepEqual(getValues(events, 'resource'), ['/plants'])
})

test('the access log includes requests that node:http rejects', async (t) => {
  const events = captureLog(t)
  const { headers } = await sendRawRequest(
    await serveProgram(t, ACCESS_LOG_SETTINGS),
    'GET / HTTP/1.1\r\nno field\r\n\r\n',
  )
  const request = headers.get('x-request-id')
  assert.deepEqual(events, [
    { event: 'refused', request, remoteAddress: '127.0.0.1', statusCode: 400, errorCode: 40000 },
  ])
})

test('the access log contains the client address even if the client disconnects before the response', async (t) => {
  const events = captureLog(t)
  const held = new DeferredCall<boolean>()
  const store = overrideStore(memoryStore(), { delete: () => held.call() })
  const connection = (await RawConnection.open(await serveProgram(t, ACCESS_LOG_SETTINGS, store))).send(DELETE)
  await held.called
  connection.socket.resetAndDestroy()
  // The store call ends only after the server has noticed that the client has disconnected.
  await waitUntil(() => connection.socket.destroyed)
  held.resolve(false)
  await waitUntil(() => events.length > 0)
  assert.deepEqual(getValues(events, 'remoteAddress'), ['127.0.0.1'])
})

test('describeError returns only the stack of an error', () => {
  const error = Object.assign(new Error('duplicate key'), { detail: 'Key (id)=(1)' })
  assert.match(describeError(error), /^Error: duplicate key\n {4}at /)
  assert.doesNotMatch(describeError(error), /Key/)
  assert.equal(describeError(Object.assign(new Error('no stack'), { stack: undefined })), 'no stack')
  assert.equal(describeError(null), 'null')
  assert.equal(describeError(Object.create(null)), '[Object: null prototype] {}')
})

test('dropped connections are logged at most once per second', async (t) => {
  const { program, admin } = await startWithMetrics(t, { PLANT_STORE_MAX_CONNECTIONS: '1' })
  const first = await program.connect()
  const others = await Promise.all([program.connect(), program.connect(), program.connect()])
  for (const { closed } of others) assert.match(await closed, /^(<ECONNRESET>)?$/)
  const events = [
    await program.waitForLogEvent('connections-dropped'),
    await program.waitForLogEvent('connections-dropped', 2),
  ]
  assert.deepEqual(getValues(events, 'count'), [1, 2])
  assert.deepEqual(getValues(events, 'max'), [1, 1])
  const [at = 0, nextAt = 0] = events.map(({ time }) => Date.parse(String(time)))
  assert.ok(nextAt - at > 900, `${nextAt - at} ms between them`)
  assert.match(await scrapeMetrics(admin), /^plant_store_http_dropped_connections_total 3$/m)
  first.socket.end()
})

test('the activation of the overload guard is logged', async (t) => {
  const events = captureLog(t)
  await sendRawRequest(await serveProgram(t, {}), `GET /plants HTTP/1.1\r\n${HOST}\r\n`.repeat(102))
  assert.deepEqual(events, [{ event: 'guard', isAwake: true }])
})

const GET = 'GET /plants HTTP/1.1\r\nHost: a\r\n'

suite('the request ID', () => {
  for (const [whose, sent] of [
    ["the client's ID", 'x'],
    ["the client's ID", '!'.repeat(128)],
    ["the client's ID", '01JDZ/abc~{"}'],
    ['a generated ID', ''],
    ['a generated ID', 'x'.repeat(129)],
    ['a generated ID', 'a b'],
    ['a generated ID', '\u00e9'],
    ['a generated ID', 'a\r\nX-Request-Id: b'],
  ] as const) {
    test(`is ${whose} in the response and the log if the client sent ${JSON.stringify(sent)}`, async (t) => {
      const events = captureLog(t)
      const port = await serveProgram(t, ACCESS_LOG_SETTINGS)
      const { headers } = await sendRawRequest(port, `${GET}X-Request-Id: ${sent}\r\nConnection: close\r\n\r\n`)
      const id = headers.get('x-request-id')!
      if (whose === 'a generated ID') assert.match(id, GENERATED_REQUEST_ID)
      else assert.equal(id, sent)
      assert.deepEqual(getValues(events, 'request'), [id])
    })
  }

  test('the generated request ID is unique, even across processes', async (t) => {
    const program = await startProgram(t)
    const elsewhere = (await program.fetch('/livez')).headers.get('x-request-id')!
    const ids = [getRequestId({ rawHeaders: undefined }), getRequestId({ rawHeaders: undefined }), elsewhere]
    for (const id of ids) assert.match(id, GENERATED_REQUEST_ID)
    const [processes, numbers] = [0, 1].map((part) => ids.map((id) => id.split('-')[part]))
    assert.equal(new Set(processes).size, 2)
    assert.notEqual(numbers![0], numbers![1])
  })

  test('a malformed request gets a generated request ID', async (t) => {
    const port = await serveProgram(t, {})
    const refused = await sendRawRequest(port, `${GET}X-Request-Id: mine\r\nno field\r\n\r\n`)
    assert.match(refused.headers.get('x-request-id')!, GENERATED_REQUEST_ID)
    const proxied = await sendRawRequest(port, 'CONNECT a:80 HTTP/1.1\r\nHost: a\r\nX-Request-Id: mine\r\n\r\n')
    assert.equal(proxied.headers.get('x-request-id'), 'mine')
  })
})
