import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { RequestListener, ServerResponse } from 'node:http'
import { suite, test, type TestContext } from 'node:test'
import { addFields } from '../../src/http/respond.ts'
import { createLimitedServer, LIMITS, type Limits, type PlantServer } from '../../src/http-server/create-server.ts'
import type { OnRejection } from '../../src/http-server/reject.ts'
import { memoryStore } from '../../src/index.ts'
import { waitUntil } from '../support/wait-until.ts'
import { connectPair, RawConnection } from '../support/raw-connection.ts'
import { createService, listStoredIds, serve as serveUntilEnd } from '../support/service.ts'

const FIELDS = 'Host: plants\r\nAuthorization: Bearer ada\r\n'
const LIST = `GET /plants HTTP/1.1\r\n${FIELDS}\r\n`
const POST = `POST /plants HTTP/1.1\r\n${FIELDS}Content-Type: application/json\r\n`
const CHUNKED = `${POST}Transfer-Encoding: chunked\r\n\r\n`
const PLANT = '{"id":1,"name":"Fern"}'
const WITH_LENGTH = `${POST}Content-Length: ${PLANT.length}\r\n\r\n`
const AMBIGUOUS = `${POST}Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n`
const MALFORMED_CHUNK = `${CHUNKED}5\r\n{"id"\r\nzz\r\n`

const DEFAULTS = Object.fromEntries(
  Object.entries(LIMITS).map(([name, { defaultValue }]) => [name, defaultValue]),
) as Limits

/** Serves a listener, and records the rejections. */
async function serve(t: TestContext, listener: RequestListener = createService(), limits: Partial<Limits> = {}) {
  const rejections: unknown[] = []
  const onRejection: OnRejection = ({ error }, request) => rejections.push([error, request?.url])
  const http: PlantServer = createLimitedServer(listener, { ...DEFAULTS, ...limits }, onRejection)
  http.server.prependListener('request', (_, response) => addFields(response, ['X-Request-Id', 'of a listener']))
  await serveUntilEnd(t, http.server)
  return { http, server: http.server, rejections }
}

const MALFORMED = 'The request is malformed.'
const TOO_LARGE = 'The request has too many header fields, or they are too large.'

suite('a request that node:http rejects gets an Error body, and its connection closes', () => {
  for (const [name, request, error, message] of [
    ['without HTTP syntax', 'plants, please\r\n\r\n', 40000, MALFORMED],
    ['with Content-Length and Transfer-Encoding', AMBIGUOUS, 40000, MALFORMED],
    ['with a header over the size limit', LIST.replace('Host', `X: ${'x'.repeat(20_000)}\r\nHost`), 43100, TOO_LARGE],
    ['with a header that arrives too late', LIST.slice(0, -2), 40800, 'The request did not arrive in time.'],
  ] as const) {
    test(`${name}: ${error}`, async (t) => {
      const { server, rejections } = await serve(t, undefined, { headersTimeoutMs: 200 })
      const client = await RawConnection.open(server)
      const [response, ...others] = await client.send(request).readResponses()
      const { status, headers, body } = response!
      assert.deepEqual(others, [])
      assert.equal(status, Math.trunc(error / 100))
      assert.equal(body, JSON.stringify({ error, message }))
      assert.match(headers.get('date')!, /^\w{3}, .+ GMT$/)
      const { date, ...rest } = Object.fromEntries(headers)
      assert.ok(date !== undefined)
      assert.deepEqual(rest, {
        'content-type': 'application/json',
        'content-length': String(body.length),
        'cache-control': 'no-store',
        connection: 'close',
      })
      assert.deepEqual(rejections, [[error, undefined]])
    })
  }
})

suite('Host', () => {
  const message = 'The request must have one Host field with a valid host.'
  for (const [name, host] of [
    ['missing', ''],
    ['empty', 'Host:\r\n'],
    ['with a space', 'Host: a b\r\n'],
    ['with a user name', 'Host: ada@plants\r\n'],
    ['with a path', 'Host: plants/\r\n'],
    ['a malformed IPv6 address', 'Host: [::g]\r\n'],
    ['repeated', 'Host: plants\r\nhOST: plants\r\n'],
  ] as const) {
    test(`${name}: 40000 with the headers of all responses, before any other check`, async (t) => {
      const { server, rejections } = await serve(t)
      const client = await RawConnection.open(server)
      const [response, ...others] = await client.send(`GET /none HTTP/1.1\r\n${host}\r\n${LIST}`).readResponses()
      assert.deepEqual(others, [])
      assert.deepEqual([response!.status, response!.body], [400, JSON.stringify({ error: 40000, message })])
      const names = ['x-request-id', 'connection', 'cache-control', 'content-type']
      assert.deepEqual(
        names.map((field) => response!.headers.get(field)),
        ['of a listener', 'close', 'no-store', 'application/json'],
      )
      assert.deepEqual(rejections, [[40000, '/none']])
    })
  }

  for (const host of ['plants', 'plants:', '127.0.0.1:3000', '[::1]', '[::1]:80', '[fe80::1%25eth0]', 'a_b', '%61']) {
    test(`${host} is valid`, async (t) => {
      const client = await RawConnection.open((await serve(t)).server)
      assert.deepEqual(await client.send(LIST.replace('plants\r\n', `${host}\r\n`)).readStatuses(1), [200])
      client.socket.destroy()
    })
  }

  test('can be missing in HTTP/1.0', async (t) => {
    const client = await RawConnection.open((await serve(t)).server)
    const { closed } = client.send('GET /plants HTTP/1.0\r\nAuthorization: Bearer ada\r\n\r\n')
    assert.match(await closed, / 200 [^]*\[\]$/)
  })
})

suite("Node's own answers", () => {
  for (const [name, request, received] of [
    ['CONNECT', `CONNECT a:80 HTTP/1.1\r\n${FIELDS}\r\n`, /^$/],
    [
      'an unknown Expect',
      LIST.replace('Host', 'Expect: rain\r\nConnection: close\r\nHost'),
      /^HTTP\/1\.1 417 [^]*\r\n\r\n0?/,
    ],
    [
      'Expect: 100-continue',
      WITH_LENGTH.replace('Host', 'Expect: 100-continue\r\nConnection: close\r\nHost') + PLANT,
      /^HTTP\/1\.1 100 [^]* 200 [^]*{"name":"Fern"}$/,
    ],
    [
      'an Upgrade',
      LIST.replace('Host', 'Connection: Upgrade\r\nUpgrade: websocket\r\nHost'),
      /^HTTP\/1\.1 200 [^]*\r\nConnection: close\r\n[^]*\[\]$/,
    ],
  ] as const) {
    test(`to ${name}`, async (t) => {
      const client = await RawConnection.open((await serve(t)).server)
      assert.match(await client.send(request).closed, received)
    })
  }
})

suite('a malformed body gets exactly one response', { timeout: 60_000 }, () => {
  test('the 400 if the listener reads the body', async (t) => {
    const store = memoryStore()
    const { server, rejections } = await serve(t, createService({ store }))
    const client = await RawConnection.open(server)
    assert.deepEqual(await client.send(MALFORMED_CHUNK).readStatuses(), [400])
    assert.deepEqual(rejections, [[40000, '/plants']])
    assert.deepEqual(await listStoredIds(store), [])
  })

  test('the 401 if the token is rejected', async (t) => {
    const client = await RawConnection.open((await serve(t)).server)
    assert.deepEqual(await client.send(`${CHUNKED.replace('ada', '=')}zz\r\n`).readStatuses(), [401])
  })

  test('the 400 if the listener responds later', async (t) => {
    const responses: ServerResponse[] = []
    const { server } = await serve(t, (_, response) => void responses.push(response))
    const client = await RawConnection.open(server)
    const statuses = client.send(MALFORMED_CHUNK).readStatuses()
    await waitUntil(() => responses.length === 1 && client.received !== '')
    responses[0]!.writeHead(200).end('late')
    assert.deepEqual(await statuses, [400])
  })

  for (const [name, listener] of Object.entries<RequestListener>({
    'that is complete': (_, response) => response.end('done'),
    'that has begun': (_, response) => {
      response.write('do')
      setTimeout(() => response.end('ne'), 50)
    },
  })) {
    test(`the response of the listener ${name}`, async (t) => {
      const { server, rejections } = await serve(t, listener)
      const [response, ...others] = await (await RawConnection.open(server)).send(MALFORMED_CHUNK).readResponses()
      assert.deepEqual([response!.status, response!.body, others], [200, 'done', []])
      assert.deepEqual(rejections, [])
    })
  }

  test('the 400 after the response to an earlier request, if the request waits for its turn', async (t) => {
    const responses: ServerResponse[] = []
    const { server } = await serve(t, (_, response) => void responses.push(response))
    const client = await RawConnection.open(server)
    const statuses = client.send(`${LIST}${MALFORMED_CHUNK}`).readStatuses()
    await waitUntil(() => responses.length === 2)
    for (const response of responses.reverse()) response.end('of the listener')
    assert.deepEqual(await statuses, [200, 400])
  })
})

test('a second error on a connection causes no second response', async (t) => {
  const { server, rejections } = await serve(t)
  const client = await RawConnection.open(server)
  client.send('nonsense\r\n\r\n')
  client.send('nonsense\r\n\r\n'.repeat(1000))
  assert.deepEqual(await client.readStatuses(), [400])
  assert.equal(rejections.length, 1)
})

test('a malformed request is rejected after the responses to the requests before it', async (t) => {
  const responses: ServerResponse[] = []
  const { server } = await serve(t, (_, response) => void responses.push(response))
  const client = await RawConnection.open(server)
  const statuses = client.send(`${LIST}${LIST}nonsense\r\n\r\n`).readStatuses()
  await waitUntil(() => responses.length === 2)
  for (const response of responses) response.writeHead(204).end()
  assert.deepEqual(await statuses, [204, 204, 400])
})

suite('a client that half-closes its connection', { timeout: 60_000 }, () => {
  for (const [name, sent, statuses, kept] of [
    ['after a create', WITH_LENGTH + PLANT, [200], [1n]],
    ['after pipelined requests', (WITH_LENGTH + PLANT).repeat(2) + LIST, [200, 409, 200], [1n]],
    ['after a create and half of a header', `${WITH_LENGTH}${PLANT}GET /pla`, [200, 400], [1n]],
    ['in the middle of a body', WITH_LENGTH + PLANT.slice(0, -1), [400], []],
    ['in the middle of a chunked body', `${CHUNKED}16\r\n${PLANT}\r\n`, [400], []],
    [
      'in the middle of the second of two bodies',
      `${WITH_LENGTH}${PLANT}${WITH_LENGTH.replace('22', '30')}{"id":2,"name":"Fern"}`,
      [200, 400],
      [1n],
    ],
    ['without a request', '', [], []],
  ] as const) {
    test(`${name} gets ${statuses.join(', ') || 'nothing'}`, async (t) => {
      const store = memoryStore()
      const { server } = await serve(t, createService({ store }), {
        keepAliveTimeoutMs: 60_000,
        headersTimeoutMs: 60_000,
      })
      const { client, accepted } = await connectPair(server)
      const closed = once(accepted, 'close')
      client.socket.end(sent)
      assert.deepEqual(await client.readStatuses(), statuses)
      await closed
      assert.deepEqual(await listStoredIds(store), kept)
    })
  }

  test('after a create that the host passes on later gets 200', async (t) => {
    const plants = createService()
    const { server } = await serve(t, (request, response) => {
      void waitUntil(() => request.socket.readableEnded).then(() => plants(request, response))
    })
    const client = await RawConnection.open(server)
    client.socket.end(WITH_LENGTH + PLANT)
    assert.deepEqual(await client.readStatuses(), [200])
  })
})
