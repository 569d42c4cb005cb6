import assert from 'node:assert/strict'
import { IncomingMessage } from 'node:http'
import { Socket } from 'node:net'
import { suite, test } from 'node:test'
import { setTimeout } from 'node:timers/promises'
import { memoryStore, StoreUnavailableError } from '../../src/index.ts'
import { describeError, flushLog } from '../../src/standalone/log.ts'
import { createReports, type Reports } from '../../src/standalone/reports.ts'
import { captureLog, valuesOf } from '../support/program/captured-log.ts'
import { delegatingStore } from '../support/database/delegating-store.ts'
import { ask, serveProgram, serveWithAdmin, WRITER } from '../support/program/in-process-program.ts'
import { RawConnection } from '../support/wire/raw-connection.ts'
import { get, post, send, servePlants } from '../support/wire/service.ts'
import { until } from '../support/until.ts'
import { NEW_ID, startProgram } from '../support/program/program.ts'

const SECRET = 'c2VjcmV0'

const broken = delegatingStore(memoryStore(), {
  list: () => {
    throw new StoreUnavailableError('the database is away', { cause: new Error('ECONNREFUSED') })
  },
})

/** The listeners for a service. */
function hooks(accessLog: boolean, slowMs?: number): Pick<Reports, 'onError' | 'onResponse'> {
  const { onError, onResponse } = createReports(accessLog, slowMs)
  return { onError, onResponse }
}

/** The fields of a response but those that each has, of which a server of a host knows the address only for a while. */
function withoutDuration(event: Readonly<Record<string, unknown>>): object {
  const { durationMs, remoteAddress, ...rest } = event
  assert.ok(Number(durationMs) > 0)
  assert.match(String(remoteAddress), /^127\.0\.0\.1$|^undefined$/)
  return rest
}

test('a failure is logged with its reason, and nothing that the client sent', async (t) => {
  const events = captureLog(t)
  const server = await servePlants(t, { ...hooks(false), store: broken, tokens: { [SECRET]: 'ada' } })
  await send(server, get(SECRET, '/plants?limit=1234567'))
  const [{ event, request, reason, count }] = events as [Record<string, unknown>]
  assert.deepEqual([events.length, event, count], [1, 'failure', 1])
  assert.match(String(request), NEW_ID)
  assert.match(String(reason), /^StoreUnavailableError: the database is away\n[^]*caused by Error: ECONNREFUSED\n/)
  assert.doesNotMatch(JSON.stringify(events), new RegExp(`${SECRET}|1234567`))
})

suite('failures within a second after one', () => {
  test('are one line with the latest of them when the second is over, and so on', async (t) => {
    const events = captureLog(t)
    const server = await servePlants(t, { ...hooks(false), store: broken })
    const startedAt = performance.now()
    for (const id of ['a', 'b', 'c', 'd']) {
      await send(server, { ...get('ada'), fields: [...get('ada').fields, 'X-Request-Id', id] })
    }
    await until(() => events.length === 2)
    assert.ok(performance.now() - startedAt >= 990)
    await send(server, get('ada'))
    assert.equal(events.length, 2)
    await until(() => events.length === 3)
    assert.deepEqual(valuesOf(events, 'count'), [1, 3, 1])
    assert.deepEqual([events[0]!['request'], events[1]!['request']], ['a', 'd'])
  })

  test('are logged at once if the program ends', async (t) => {
    const events = captureLog(t)
    const server = await servePlants(t, { ...hooks(false), store: broken })
    for (let i = 0; i < 3; i++) await send(server, get('ada'))
    await flushLog()
    assert.deepEqual(valuesOf(events, 'count'), [1, 2])
  })
})

test('a list that breaks off is logged as its client saw it, with the reason', async (t) => {
  const events = captureLog(t)
  const page = Array.from({ length: 1000 }, (_, i) => ({ id: BigInt(i), name: 'Fern' }))
  const store = delegatingStore(memoryStore(), {
    list: (_, { after }) => (after === undefined ? page : Promise.reject(new Error('disk'))),
  })
  const server = await servePlants(t, { ...hooks(true), store })
  await assert.rejects(send(server, get('ada')), { code: 'ECONNRESET' })

  const [failure, response] = events
  assert.match(String(failure!['reason']), /^Error: disk\n/)
  const bytes = 1000 * '{"name":"Fern"},'.length
  const { request } = failure!
  const expected = { event: 'response', request, method: 'GET', resource: '/plants', owner: 'ada', status: 200 }
  assert.deepEqual(withoutDuration(response!), { ...expected, bytes, complete: false })
})

suite('an answer that is no failure', () => {
  test('is not logged where nobody wants an access log, nor is a 501, which takes no token', async (t) => {
    const events = captureLog(t)
    const server = await servePlants(t, hooks(false))
    await send(server, get('ada'))
    const fields = ['Transfer-Encoding', 'gzip, chunked']
    assert.equal((await send(server, { method: 'POST', path: '/plants', fields })).status, 501)
    assert.deepEqual(events, [])
  })

  test('is a line of the access log', async (t) => {
    const events = captureLog(t)
    const server = await servePlants(t, { ...hooks(true), tokens: { [SECRET]: 'ada' } })
    await send(server, post(SECRET, '{"id":1,"name":"Fern"}'))
    const { body } = await send(server, get('guess', '/plants/1?token=guess'))

    const [first, second] = events.map(({ request }) => request)
    assert.match(String(first), NEW_ID)
    assert.notEqual(first, second)
    const [created, refused] = events.map(withoutDuration)
    const told = { event: 'response', complete: true }
    const plants = { method: 'POST', resource: '/plants', owner: 'ada' }
    assert.deepEqual(created, { ...told, request: first, ...plants, status: 200, bytes: 15 })
    const plant = { method: 'GET', resource: '/plants/{id}', error: 40101 }
    assert.deepEqual(refused, { ...told, request: second, ...plant, status: 401, bytes: body.length })
  })
})

test('a response is logged as slow from some time on, beside the access log or without', (t) => {
  const events = captureLog(t)
  const request = new IncomingMessage(new Socket())
  const event = { request, resource: undefined, owner: undefined, status: 200, error: undefined, bytes: 0 }
  for (const accessLog of [true, false]) {
    const { onResponse } = hooks(accessLog, 25)
    for (const durationMs of [24.9, 25]) onResponse!({ ...event, complete: true, durationMs })
  }
  const names = events.map(({ event, durationMs }) => [event, durationMs])
  assert.deepEqual(names.sort(), [
    ['response', 24.9],
    ['response', 25],
    ['slow', 25],
    ['slow', 25],
  ])
})

test('PLANT_STORE_SLOW_MS says from when on', async (t) => {
  const events = captureLog(t)
  const slow = delegatingStore(memoryStore(), { delete: () => setTimeout(20, false) })
  const port = await serveProgram(t, { PLANT_STORE_SLOW_MS: '10' }, slow)
  const answer = await ask(port, `DELETE /plants/1 HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${WRITER}\r\n\r\n`)
  const [event] = events
  const asked = { event: 'slow', request: answer.headers.get('x-request-id'), method: 'DELETE', owner: 'ada' }
  const told = { resource: '/plants/{id}', status: 404, error: 40401, bytes: answer.body.length, complete: true }
  assert.deepEqual(withoutDuration(event!), { ...asked, ...told })
})

suite('the access log has one line for', () => {
  const HOST = 'Host: a\r\n'
  const PREFLIGHT = `${HOST}Origin: http://a\r\nAccess-Control-Request-Method: GET\r\n`
  const rows: readonly [
    ...[what: string, request: string, fields: string, status: number],
    ...[resource?: string | undefined, error?: number],
  ][] = [
    ['a request without a Host', 'GET /plants', '', 400, undefined, 40000],
    ['a wrong Host', 'GET /plants', 'Host: a b\r\n', 400, undefined, 40000],
    ['a wrong Host of a probe', 'GET /livez', 'Host: a b\r\n', 400, undefined, 40000],
    ['a wrong Host with HEAD', 'HEAD /plants', 'Host: a b\r\n', 400, undefined, 40000],
    ['another Expect', 'GET /plants', `${HOST}Expect: x\r\n`, 417, undefined, 41700],
    ['a preflight for no resource', 'OPTIONS /x', PREFLIGHT, 204],
    ['a preflight for a resource', 'OPTIONS /plants', PREFLIGHT, 204, '/plants'],
    ['the page', 'GET /', HOST, 200, '/'],
    ['the page with HEAD', 'HEAD /', HOST, 200, '/'],
    ['the description', 'GET /openapi.json', HOST, 200, '/openapi.json'],
    ['a description that the client has', 'GET /openapi.json', `${HOST}If-None-Match: *\r\n`, 304, '/openapi.json'],
    ['a method that it lacks', 'DELETE /openapi.json', HOST, 405, '/openapi.json', 40500],
    ['a path that is no resource', 'GET /nothing', HOST, 404, undefined, 40400],
  ]
  for (const [what, request, fields, status, resource, error] of rows) {
    test(what, async (t) => {
      const events = captureLog(t)
      const port = await serveProgram(t, { PLANT_STORE_ACCESS_LOG: '1', PLANT_STORE_CORS_ORIGINS: '*' })
      const sent = `${request} HTTP/1.1\r\n${fields}X-Request-Id: mine\r\nConnection: close\r\n\r\n`
      const [, body = ''] = (await (await RawConnection.open(port)).send(sent).closed).split('\r\n\r\n')
      // Two lines would come one after the other.
      await until(() => events.length > 0)
      await ask(port, `GET /plants HTTP/1.1\r\n${HOST}\r\n`)
      await until(() => events.length > 1)
      assert.equal(events.length, 2)
      const [method] = request.split(' ')
      const expected = { event: 'response', request: 'mine', method, resource, status, error, bytes: body.length }
      assert.deepEqual(withoutDuration(events[0]!), JSON.parse(JSON.stringify({ ...expected, complete: true })))
    })
  }
})

test('the access log has no line for the probes, nor for the admin port', async (t) => {
  const events = captureLog(t)
  const { port, admin } = await serveWithAdmin(t, { PLANT_STORE_ACCESS_LOG: '1' })
  for (const path of ['/livez', '/readyz']) await ask(port, `GET ${path} HTTP/1.1\r\nHost: a\r\n\r\n`)
  for (const path of ['/livez', '/readyz', '/metrics', '/x']) await (await fetch(admin + path)).text()
  await ask(port, 'GET /plants HTTP/1.1\r\nHost: a\r\n\r\n')
  await until(() => events.length > 0)
  assert.deepEqual(valuesOf(events, 'resource'), ['/plants'])
})

test('a refusal on a bare connection is a line of the access log, with the id of its response', async (t) => {
  const events = captureLog(t)
  const { headers } = await ask(
    await serveProgram(t, { PLANT_STORE_ACCESS_LOG: '1' }),
    'GET / HTTP/1.1\r\nno field\r\n\r\n',
  )
  const request = headers.get('x-request-id')
  assert.deepEqual(events, [{ event: 'refused', request, remoteAddress: '127.0.0.1', status: 400, error: 40000 }])
})

test('the access log has the address of a client that has gone before the response', async (t) => {
  const events = captureLog(t)
  const lists: ((page: []) => void)[] = []
  const store = delegatingStore(memoryStore(), { list: () => new Promise((resolve) => lists.push(resolve)) })
  const connection = await RawConnection.open(await serveProgram(t, { PLANT_STORE_ACCESS_LOG: '1' }, store))
  connection.send(`GET /plants HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${WRITER}\r\n\r\n`)
  await until(() => lists.length > 0)
  connection.socket.resetAndDestroy()
  // What waits is answered once the server knows that the client has gone.
  await until(() => connection.socket.destroyed)
  lists[0]!([])
  await until(() => events.length > 0)
  assert.deepEqual(valuesOf(events, 'remoteAddress'), ['127.0.0.1'])
})

suite('of what was thrown, the log has', () => {
  test('the stack of an error, and none of its other members', () => {
    const described = describeError(Object.assign(new Error('duplicate key'), { detail: 'Key (id)=(1)' }))
    assert.match(described, /^Error: duplicate key\n {4}at /)
    assert.doesNotMatch(described, /Key/)
  })

  test('the message of an error without a stack', () => {
    assert.equal(describeError(Object.assign(new Error('no stack'), { stack: undefined })), 'no stack')
  })

  test('anything else as it is', () => {
    assert.equal(describeError(null), 'null')
    assert.equal(describeError(Object.create(null)), '[Object: null prototype] {}')
  })
})

test('connections beyond the maximum are counted in the log, at most once a second', async (t) => {
  const program = await startProgram(t, { PLANT_STORE_MAX_CONNECTIONS: '1' })
  const first = await program.connect()
  const others = await Promise.all([program.connect(), program.connect(), program.connect()])
  for (const { closed } of others) assert.match(await closed, /^(<ECONNRESET>)?$/)
  const events = [await program.logged('connections-dropped'), await program.logged('connections-dropped', 2)]
  assert.deepEqual(
    events.map(({ count, max }) => [count, max]),
    [
      [1, 1],
      [2, 1],
    ],
  )
  const [at = 0, nextAt = 0] = events.map(({ time }) => Date.parse(String(time)))
  assert.ok(nextAt - at > 900, `${nextAt - at} ms between them`)
  first.socket.end()
})

test('without an access log no refusal on a bare connection is logged', async (t) => {
  const events = captureLog(t)
  assert.equal((await ask(await serveProgram(t, {}), 'no HTTP\r\n\r\n')).status, 400)
  assert.deepEqual(events, [])
})

test('that the guard wakes is logged', async (t) => {
  const events = captureLog(t)
  await ask(await serveProgram(t, {}), 'GET /plants HTTP/1.1\r\nHost: a\r\n\r\n'.repeat(102))
  const awake = events.map(({ event, isAwake }) => [event, isAwake])
  assert.deepEqual(awake, [['guard', true]])
})
