import assert from 'node:assert/strict'
import { EventEmitter } from 'node:events'
import { IncomingMessage, ServerResponse } from 'node:http'
import { Socket } from 'node:net'
import { Readable, Writable } from 'node:stream'
import { suite, test } from 'node:test'
import { setImmediate as nextTick } from 'node:timers/promises'
import { toFetchResponse, toReqRes } from 'fetch-to-node'
import { inject } from 'light-my-request'
import { createMocks, type RequestMethod } from 'node-mocks-http'
import serverless from 'serverless-http'
import { createPlantStore, memoryStore, type PlantStore } from '../../src/index.ts'
import { del, get, post, toTestResponse, type TestResponse, type TestRequest } from '../support/wire/service.ts'
import { testCases } from './check-cases.ts'
import { authenticate } from './contract-cases.ts'

const JSON_FIELDS = { 'content-type': 'application/json', 'cache-control': 'no-store' }

/** Converts the header fields of a request to an object. Each name must be unique. */
function toHeaders({ fields }: TestRequest): Record<string, string> {
  const headers: Record<string, string> = {}
  for (let i = 0; i < fields.length; i += 2) headers[fields[i]!] = fields[i + 1]!
  return headers
}

/** Functions that call a service with a request that didn't arrive over a connection. */
const ADAPTERS: Readonly<Record<string, (plantStore: PlantStore, request: TestRequest) => Promise<TestResponse>>> = {
  /** For AWS Lambda. The request has no `rawHeaders`. */
  async 'serverless-http'(plantStore, request) {
    const { method, path, body = '' } = request
    const [rawPath, rawQueryString = ''] = path.split('?')
    const event = {
      version: '2.0',
      rawPath,
      rawQueryString,
      headers: toHeaders(request),
      requestContext: { http: { method, sourceIp: '127.0.0.1' } },
      body: Buffer.from(body).toString('base64'),
      isBase64Encoded: true,
    }
    const result = (await serverless(plantStore)(event, {})) as { statusCode: number; headers: object; body: string }
    return toTestResponse(result.statusCode, result.headers, result.body)
  },

  /** Plain objects without `rawHeaders` and streams, whose `write` returns undefined. The body is already parsed. */
  async 'node-mocks-http'(plantStore, request) {
    const body = Buffer.from(request.body ?? '')
    const headers = { ...toHeaders(request), 'content-length': String(body.length) }
    const { req, res } = createMocks(
      { method: request.method as RequestMethod, url: request.path, headers, body },
      { eventEmitter: EventEmitter },
    )
    const ended = new Promise((resolve) => res.on('end', resolve))
    plantStore(req, res)
    await ended
    return toTestResponse(res.statusCode, res.getHeaders(), res._getData() as string)
  },

  async 'light-my-request'(plantStore, request) {
    const { method, path, body } = request
    const { statusCode, headers, payload } = await inject((req, res) => plantStore(req, res), {
      method: method as 'GET',
      url: path,
      headers: toHeaders(request),
      ...(body !== undefined && { payload: Buffer.from(body) }),
    })
    return toTestResponse(statusCode, headers, payload)
  },

  /** For workers with `fetch`. Neither the request nor the response has a socket. */
  async 'fetch-to-node'(plantStore, request) {
    const { method, path, body } = request
    const init = { method, headers: toHeaders(request), ...(body !== undefined && { body }) }
    const { req, res } = toReqRes(new Request(`http://host${path}`, init))
    plantStore(req, res)
    const response = await toFetchResponse(res)
    return toTestResponse(response.status, Object.fromEntries(response.headers), await response.text())
  },
}

for (const [name, call] of Object.entries(ADAPTERS)) {
  suite(`the service behind ${name}`, { timeout: 60_000 }, () => {
    test('responds as expected to every contract case', async (t) => {
      const plantStore = createPlantStore({ authenticate })
      const client = { send: (request: TestRequest) => call(plantStore, request) }
      // The adapters merge repeated header fields, so the cases with such fields are skipped, as on HTTP/2.
      await testCases(t, { name, client, isHttp1: false })
    })

    test(`creates a plant with an id beyond 2^53 (${name})`, async () => {
      const plantStore = createPlantStore({ authenticate })

      const created = await call(plantStore, post('ada', '{"id":9007199254740993,"name":"Férn 🌱"}'))

      const body = '{"name":"Férn 🌱"}'
      const headers = { ...JSON_FIELDS, 'content-length': String(Buffer.byteLength(body)) }
      assert.deepEqual(created, { status: 200, headers, body })
      assert.equal((await call(plantStore, del('ada', '9007199254740993'))).status, 204)
    })

    test(`returns a complete list of 5,000 plants (${name})`, async () => {
      const store = memoryStore()
      const plants = Array.from({ length: 5000 }, (_, i) => ({ name: `é ${i}` }))
      for (const [i, plant] of plants.entries()) void store.create('ada', { id: BigInt(i), ...plant })

      const list = await call(createPlantStore({ authenticate, store }), get('ada'))

      assert.deepEqual(list, { status: 200, headers: JSON_FIELDS, body: JSON.stringify(plants) })
    })
  })
}

/** Adds a method, a URL and headers to a mock request, and returns a response that records what it writes. */
function createRequestAndResponse(
  request: IncomingMessage,
  testRequest: TestRequest,
): { response: ServerResponse; sent: () => string } {
  const headers = { ...toHeaders(testRequest), 'content-length': String(Buffer.byteLength(testRequest.body ?? '')) }
  Object.assign(request, { method: testRequest.method, url: testRequest.path, headers })
  const response = new ServerResponse(request)
  let text = ''
  const write = (chunk: Buffer, _: unknown, done: () => void): void => {
    text += chunk.toString()
    done()
  }
  response.assignSocket(new Writable({ write }) as unknown as Socket)
  return { response, sent: () => text }
}

/** Waits for as many event-loop ticks as an immediate response needs. */
async function waitForTicks(): Promise<void> {
  for (let i = 0; i < 10; i++) await nextTick()
}

suite('the service with mock requests', { timeout: 60_000 }, () => {
  const created = post('ada', '{"id":7,"name":"Fern"}')
  const malformed = post('ada', '{"id":7]')
  const rejected = { ...malformed, fields: [] }

  const requests: Record<string, (body: string) => IncomingMessage> = {
    'a stream of strings without a socket': (body) => Readable.from([body]) as unknown as IncomingMessage,
    'a stream of bytes without a socket': (body) => Readable.from([Buffer.from(body)]) as unknown as IncomingMessage,
  }
  const sockets = { unconnected: () => new Socket(), null: () => null, undefined: () => undefined }
  for (const [name, createSocket] of Object.entries(sockets)) {
    requests[`an IncomingMessage whose socket is ${name}`] = (body) => {
      const request = new IncomingMessage(createSocket()!)
      request.push(body)
      request.push(null)
      return request
    }
  }

  for (const [name, createRequest] of Object.entries(requests)) {
    for (const [what, asked, status] of [
      ['a valid plant', created, 200],
      ['a malformed body', malformed, 400],
      ['a missing token', rejected, 401],
    ] as const) {
      test(`responds immediately with ${status} to ${what} (${name})`, async () => {
        const request = createRequest(String(asked.body))
        const { response, sent } = createRequestAndResponse(request, asked)
        createPlantStore({ authenticate })(request, response)
        await waitForTicks()
        assert.match(sent(), new RegExp(`^HTTP/1\\.1 ${status} [^]*}(?:\r\n0\r\n\r\n)?$`))
        assert.ok(response.writableEnded)
      })
    }
  }

  for (const [name, socket] of Object.entries({
    'an unconnected Socket': new Socket(),
    'an EventEmitter': new EventEmitter(),
    'an object': {},
  })) {
    test(`responds if request.socket is ${name} and the ServerResponse has no socket`, async () => {
      const request = Object.assign(new IncomingMessage(new Socket()), { socket })
      request.push(created.body)
      request.push(null)
      Object.assign(request, { method: 'POST', url: '/plants', headers: toHeaders(created) })
      const response = new ServerResponse(request)
      createPlantStore({ authenticate })(request, response)
      await waitForTicks()
      assert.deepEqual([response.statusCode, response.writableEnded], [200, true])
    })
  }

  test('responds with 401 to a request on an unconnected socket, without waiting for the request body', async () => {
    const request = new IncomingMessage(new Socket())
    const { response } = createRequestAndResponse(request, rejected)
    createPlantStore({ authenticate })(request, response)
    await waitForTicks()
    assert.deepEqual([response.statusCode, response.writableEnded], [401, true])
  })
})
