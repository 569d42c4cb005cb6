import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { IncomingMessage, type Server } from 'node:http'
import { Socket } from 'node:net'
import { suite, test, type TestContext } from 'node:test'
import { setImmediate as nextTick } from 'node:timers/promises'
import { jsonResponse, respond } from '../../../src/http/respond.ts'
import { memoryStore, StoreUnavailableError, type Store } from '../../../src/index.ts'
import { programDescription } from '../../../src/standalone/paths/program-description.ts'
import { createDocumentHandler } from '../../../src/standalone/paths/program-listener.ts'
import { createReadiness } from '../../../src/standalone/paths/readiness.ts'
import { overrideStore } from '../../support/database/override-store.ts'
import { createProcessClock } from '../../support/event-loop.ts'
import { captureLog, getValues } from '../../support/program/capture-log.ts'
import { serveProgram, serveWithAdmin, WRITER_TOKEN } from '../../support/program/in-process-program.ts'
import { scrapeMetrics, startWithMetrics } from '../../support/program/metrics.ts'
import { createTestListener } from '../../support/program/test-listener.ts'
import { waitUntil } from '../../support/wait-until.ts'
import { sendRequest, sendToPort, serve, type TestResponse } from '../../support/wire/service.ts'

/** Serves the program's paths and the API. */
function serveProgramPaths(t: TestContext, ping?: Store['ping'], isDraining = false): Promise<Server> {
  return serve(t, createTestListener({ store: { ...memoryStore(), ...(ping && { ping }) } }, undefined, isDraining))
}

/** Sends a request without a token. */
function sendAnonymous(
  server: Server,
  path: string,
  method = 'GET',
  fields: readonly string[] = [],
): Promise<TestResponse> {
  return sendRequest(server, { method, path, fields })
}

const NO_STORE = { 'cache-control': 'no-store' }

function createJsonResponse(status: number, value: unknown, headers: Record<string, string> = NO_STORE): TestResponse {
  const body = JSON.stringify(value)
  const length = String(Buffer.byteLength(body))
  return { status, headers: { 'content-type': 'application/json', 'content-length': length, ...headers }, body }
}

const LIVE_RESPONSE = createJsonResponse(200, { status: 'live' })

test('/openapi.json returns the OpenAPI description with a hash as the ETag', async (t) => {
  const etag = `"${createHash('sha256').update(JSON.stringify(programDescription)).digest('base64url')}"`
  const expected = createJsonResponse(200, programDescription, { etag })
  assert.deepEqual(await sendAnonymous(await serveProgramPaths(t), '/openapi.json'), expected)
})

test('OPTIONS requests and health checks ignore If-None-Match', async (t) => {
  const server = await serveProgramPaths(t)
  const fields = ['If-None-Match', '*']
  const headers = { allow: 'GET, HEAD, OPTIONS' }
  assert.deepEqual(await sendAnonymous(server, '/openapi.json', 'OPTIONS', fields), { status: 204, headers, body: '' })
  assert.deepEqual(await sendAnonymous(server, '/livez', 'GET', fields), LIVE_RESPONSE)
})

for (const path of ['/livez', '/livez?verbose', 'http://host/livez', '/%6Civez', '/livez?a=/b']) {
  test(`${path} returns the status of /livez`, async (t) => {
    assert.deepEqual(await sendAnonymous(await serveProgramPaths(t), path), LIVE_RESPONSE)
  })
}

for (const path of ['/livez/', '//livez', '*/livez', '/Livez', '/%2Flivez', '/livez%', '/', '/undefined']) {
  test(`${path} is not a health check, but an unknown path of the service`, async (t) => {
    const message = 'There is no resource at this path. The plants are at /plants.'
    assert.deepEqual(
      await sendAnonymous(await serveProgramPaths(t), path),
      createJsonResponse(404, { error: 40400, message }),
    )
  })
}

suite('an OPTIONS request for the whole server', () => {
  const allowed = { status: 204, headers: { allow: 'GET, HEAD, POST, DELETE, OPTIONS' }, body: '' }

  for (const target of ['*', 'http://plants.example', 'HTTPS://plants.example:443']) {
    test(`to ${target} returns the methods of all paths`, async (t) => {
      assert.deepEqual(await sendAnonymous(await serveProgramPaths(t), target, 'OPTIONS'), allowed)
    })

    test(`to ${target} returns the same methods on the admin port`, async (t) => {
      const { admin } = await serveWithAdmin(t)
      const { port } = new URL(admin)
      const { status, headers } = await sendToPort(Number(port), { method: 'OPTIONS', path: target, fields: [] })
      assert.deepEqual([status, headers['allow']], [204, 'GET, HEAD, POST, DELETE, OPTIONS'])
    })
  }

  for (const [method, target] of [
    ['GET', '*'],
    ['DELETE', '*'],
    ['OPTIONS', '*?a'],
    ['OPTIONS', 'ftp://plants.example'],
    ['OPTIONS', 'http://'],
  ] as const) {
    test(`is not ${method} ${target}, which results in 404`, async (t) => {
      assert.equal((await sendAnonymous(await serveProgramPaths(t), target, method)).status, 404)
    })
  }

  test('an OPTIONS request with repeated header fields is rejected with 400', async (t) => {
    const fields = ['Content-Type', 'a/b', 'Content-Type', 'a/b']
    assert.equal((await sendAnonymous(await serveProgramPaths(t), '*', 'OPTIONS', fields)).status, 400)
  })
})

suite('the admin port', () => {
  test('serves only health checks and metrics', async (t) => {
    const { port, admin } = await serveWithAdmin(t)
    const urls = ['/livez', '/readyz', '/metrics', '/plants', '/openapi.json', '/'].map((path) => admin + path)
    const responses = await Promise.all([...urls, `http://127.0.0.1:${port}/metrics`].map((url) => fetch(url)))
    assert.deepEqual(
      responses.map(({ status }) => status),
      [200, 200, 200, 404, 404, 404, 404],
    )
    assert.equal(responses[2]!.headers.get('content-type'), 'text/plain; version=0.0.4; charset=utf-8')
    assert.deepEqual(await responses[3]!.json(), {
      error: 40400,
      message: 'No such resource. The admin port has /livez, /readyz and /metrics.',
    })
    const post = await fetch(`${admin}/metrics`, { method: 'POST' })
    assert.deepEqual([post.status, post.headers.get('allow')], [405, 'GET, HEAD, OPTIONS'])
  })

  test('reports a shutdown in /readyz and in the metrics', async (t) => {
    const environment = { PLANT_STORE_ADMIN_HOST: 'localhost', PLANT_STORE_DRAIN_DELAY_MS: '60000' }
    const { program, admin } = await startWithMetrics(t, environment)
    assert.match(admin, /^http:\/\/localhost:/)
    assert.match(await scrapeMetrics(admin), /^plant_store_ready 1$/m)
    program.child.kill('SIGTERM')
    await program.waitForLogEvent('drain-delay')
    assert.match(await scrapeMetrics(admin), /^plant_store_ready 0$/m)
    assert.equal((await fetch(`${admin}/readyz`)).status, 503)
    assert.equal((await fetch(`${admin}/livez`)).status, 200)
  })
})

const VALUE = { name: 'Fougère' }
const HASH = createHash('sha256').update(JSON.stringify(VALUE)).digest('base64url')
const ETAG = `"${HASH}"`

const getDocument = createDocumentHandler(jsonResponse(VALUE))

suite('If-None-Match', () => {
  const known = [ETAG, `W/${ETAG}`, `${ETAG}, "other"`, `W/"other" ,\t${ETAG}`, `"a,b",,${ETAG}`, '*']
  const other = ['', '"other"', 'W/"other", "more"', `"${HASH}-gzip"`, `"x${HASH}"`, HASH, '"*"', '*, "other"']
  for (const [status, values] of [
    [304, known],
    [200, other],
  ] as const) {
    for (const value of values) {
      test(`${value} results in ${status}`, () => {
        const request = Object.assign(new IncomingMessage(new Socket()), { headers: { 'if-none-match': value } })
        const { headers, ...found } = getDocument(request)
        assert.deepEqual([found.status, found.body === undefined, headers], [status, status === 304, ['ETag', ETAG]])
      })
    }
  }
})

test('a document is sent completely even if middleware wraps response.write', async (t) => {
  const server = await serve(t, (request, response) => {
    const write = response.write.bind(response)
    Object.assign(response, { write: (piece: string) => write(piece) })
    void respond(request, response, getDocument(request))
  })
  assert.deepEqual(await sendAnonymous(server, '/'), createJsonResponse(200, VALUE, { etag: ETAG }))
})

const READY_RESPONSE = createJsonResponse(200, { status: 'ready' })

function createNotReadyResponse(message: string): TestResponse {
  return createJsonResponse(503, { error: 50300, message }, { ...NO_STORE, 'retry-after': '1' })
}

suite('/readyz', () => {
  const away = new Error('the database is away')
  const throwing = (): never => {
    throw away
  }
  const never = (): Promise<void> => new Promise(() => undefined)
  const rows: readonly [name: string, ping: Store['ping'], reason?: RegExp][] = [
    ['has no ping method', undefined],
    ['resolves the ping', () => Promise.resolve()],
    ['rejects the ping', () => Promise.reject(away), /^Error: the database is away\n/],
    ['throws in ping', throwing, /^Error: the database is away\n/],
    ['never resolves the ping', never, /^StoreUnavailableError: the store did not respond to a ping within 900 ms\n/],
  ]
  for (const [name, ping, reason] of rows) {
    test(`returns ${reason ? '503 and logs the reason' : '200'} if the store ${name}`, async (t) => {
      const events = captureLog(t)
      const expected = reason
        ? createNotReadyResponse('The store is temporarily unavailable. The request had no effect; try again.')
        : READY_RESPONSE
      assert.deepEqual(await sendAnonymous(await serveProgramPaths(t, ping), '/readyz'), expected)
      assert.deepEqual(getValues(events, 'event'), reason ? ['unready'] : [])
      if (reason) assert.match(String(events[0]!['reason']), reason)
    })
  }

  test('/readyz returns 503 during a drain', async (t) => {
    const server = await serveProgramPaths(t, undefined, true)
    assert.deepEqual(await sendAnonymous(server, '/readyz'), createNotReadyResponse('The service is shutting down.'))
  })

  test('/readyz pings the store at most once per second, however many requests arrive', async (t) => {
    let pings = 0
    const server = await serveProgramPaths(t, () => {
      pings++
    })
    const startedAt = performance.now()
    let asked = 0
    for (; pings < 3; asked++) assert.equal((await sendAnonymous(server, '/readyz')).status, 200)
    assert.ok(performance.now() - startedAt >= 1990)
    assert.ok(asked > 10)
  })

  test('/readyz reports within 2 s that the store has stopped or resumed responding', async (t) => {
    const events = captureLog(t)
    let isHanging = false
    const server = await serveProgramPaths(t, () => (isHanging ? new Promise(() => undefined) : undefined))
    for (const [status, next] of [
      [200, 503],
      [503, 200],
      [200, 503],
    ] as const) {
      assert.equal((await sendAnonymous(server, '/readyz')).status, status)
      const elapsed = createProcessClock()
      isHanging = !isHanging
      await waitUntil(async () => (await sendAnonymous(server, '/readyz')).status !== status)
      assert.ok(elapsed() < 2100, `${elapsed()} ms`)
      assert.equal((await sendAnonymous(server, '/readyz')).status, next)
    }
    assert.deepEqual(getValues(events, 'event'), ['unready', 'ready', 'unready'])
  })

  test('the failure and the recovery of the store are logged even if nobody requests /readyz', async (t) => {
    const events = captureLog(t)
    let isAway = true
    const fail = (): void => {
      if (isAway) throw new StoreUnavailableError('the database is away')
    }
    const list = (): never => {
      throw new StoreUnavailableError('the database is away')
    }
    const port = await serveProgram(t, {}, overrideStore(memoryStore(), { list, ping: fail }))
    await sendToPort(port, { method: 'GET', path: '/plants', fields: ['Authorization', `Bearer ${WRITER_TOKEN}`] })
    await waitUntil(() => events.length === 2)
    assert.deepEqual(getValues(events, 'event'), ['failure', 'unready'])
    isAway = false
    await waitUntil(() => events.length === 3)
    assert.deepEqual(events[2], { event: 'ready' })
  })

  test('/readyz continues to ping an unavailable store even if a timer fires early', async (t) => {
    captureLog(t)
    // Timers count whole milliseconds: in a busy event loop, most of them fire up to 1 ms early.
    let immediate = setImmediate(function spin() {
      immediate = setImmediate(spin)
    })
    t.after(() => clearImmediate(immediate))
    const pings = Array.from({ length: 20 }, () => 0)
    for (const index of pings.keys()) {
      const ping = (): never => {
        pings[index]!++
        throw away
      }
      await createReadiness({ ...memoryStore(), ping }, () => false)()
      await nextTick()
    }
    await waitUntil(() => pings.every((count) => count > 1))
  })
})
