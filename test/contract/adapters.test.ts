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
import { del, get, post, toAnswer, type Answer, type Request as Asked } from '../support/wire/service.ts'
import { authenticate, CONTRACT_CASES } from './cases.ts'
import { checkCases } from './check-cases.ts'

const JSON_FIELDS = { 'content-type': 'application/json', 'cache-control': 'no-store' }

/** The fields of a request that has each of them once. */
function headersOf({ fields }: Asked): Record<string, string> {
  const headers: Record<string, string> = {}
  for (let i = 0; i < fields.length; i += 2) headers[fields[i]!] = fields[i + 1]!
  return headers
}

/** What calls a service with a request that came over no connection. */
const ADAPTERS: Readonly<Record<string, (plantStore: PlantStore, request: Asked) => Promise<Answer>>> = {
  /** AWS Lambda; the request has no `rawHeaders`. */
  async 'serverless-http'(plantStore, request) {
    const { method, path, body = '' } = request
    const [rawPath, rawQueryString = ''] = path.split('?')
    const event = {
      version: '2.0',
      rawPath,
      rawQueryString,
      headers: headersOf(request),
      requestContext: { http: { method, sourceIp: '127.0.0.1' } },
      body: Buffer.from(body).toString('base64'),
      isBase64Encoded: true,
    }
    const result = (await serverless(plantStore)(event, {})) as { statusCode: number; headers: object; body: string }
    return toAnswer(result.statusCode, result.headers, result.body)
  },

  /** Plain objects: no `rawHeaders`, no streams, and a `write` that returns nothing. The body is there already. */
  async 'node-mocks-http'(plantStore, request) {
    const body = Buffer.from(request.body ?? '')
    const headers = { ...headersOf(request), 'content-length': String(body.length) }
    const { req, res } = createMocks(
      { method: request.method as RequestMethod, url: request.path, headers, body },
      { eventEmitter: EventEmitter },
    )
    const ended = new Promise((resolve) => res.on('end', resolve))
    plantStore(req, res)
    await ended
    return toAnswer(res.statusCode, res.getHeaders(), res._getData() as string)
  },

  async 'light-my-request'(plantStore, request) {
    const { method, path, body } = request
    const { statusCode, headers, payload } = await inject((req, res) => plantStore(req, res), {
      method: method as 'GET',
      url: path,
      headers: headersOf(request),
      ...(body !== undefined && { payload: Buffer.from(body) }),
    })
    return toAnswer(statusCode, headers, payload)
  },

  /** Workers that have `fetch`; neither the request nor the response has a socket. */
  async 'fetch-to-node'(plantStore, request) {
    const { method, path, body } = request
    const init = { method, headers: headersOf(request), ...(body !== undefined && { body }) }
    const { req, res } = toReqRes(new Request(`http://host${path}`, init))
    plantStore(req, res)
    const response = await toFetchResponse(res)
    return toAnswer(response.status, Object.fromEntries(response.headers), await response.text())
  },
}

for (const [name, call] of Object.entries(ADAPTERS)) {
  suite(`a request that ${name} makes up`, { timeout: 60_000 }, () => {
    for (const [group, rows] of Object.entries(CONTRACT_CASES)) {
      test(`is answered as the contract says: ${group}`, async () => {
        const plantStore = createPlantStore({ authenticate })
        const client = { send: (request: Asked) => call(plantStore, request) }
        // Nothing tells that a field was given twice.
        await checkCases(client, group, rows, { prefix: '', isHttp1: false })
      })
    }

    test('creates a plant with an id beyond 2^53', async () => {
      const plantStore = createPlantStore({ authenticate })

      const created = await call(plantStore, post('ada', '{"id":9007199254740993,"name":"Férn 🌱"}'))

      const body = '{"name":"Férn 🌱"}'
      const headers = { ...JSON_FIELDS, 'content-length': String(Buffer.byteLength(body)) }
      assert.deepEqual(created, { status: 200, headers, body })
      assert.equal((await call(plantStore, del('ada', '9007199254740993'))).status, 204)
    })

    test('gets a list of 5,000 plants whole', async () => {
      const store = memoryStore()
      const plants = Array.from({ length: 5000 }, (_, i) => ({ name: `é ${i}` }))
      for (const [i, plant] of plants.entries()) void store.create('ada', { id: BigInt(i), ...plant })

      const list = await call(createPlantStore({ authenticate, store }), get('ada'))

      assert.deepEqual(list, { status: 200, headers: JSON_FIELDS, body: JSON.stringify(plants) })
    })
  })
}

/** A request and a response that a test creates, and the text that the response writes. */
function createPair(request: IncomingMessage, asked: Asked): { response: ServerResponse; sent: () => string } {
  const headers = { ...headersOf(asked), 'content-length': String(Buffer.byteLength(asked.body ?? '')) }
  Object.assign(request, { method: asked.method, url: asked.path, headers })
  const response = new ServerResponse(request)
  let text = ''
  const write = (chunk: Buffer, _: unknown, done: () => void): void => {
    text += chunk.toString()
    done()
  }
  response.assignSocket(new Writable({ write }) as unknown as Socket)
  return { response, sent: () => text }
}

/** Lets pass what an immediate response needs. */
async function passTicks(): Promise<void> {
  for (let i = 0; i < 10; i++) await nextTick()
}

suite('a request that a test creates', { timeout: 60_000 }, () => {
  const created = post('ada', '{"id":7,"name":"Fern"}')
  const malformed = post('ada', '{"id":7]')
  const rejected = { ...malformed, fields: [] }

  const requests: Record<string, (body: string) => IncomingMessage> = {
    'as a stream of strings without a socket': (body) => Readable.from([body]) as unknown as IncomingMessage,
    'as a stream of bytes without a socket': (body) => Readable.from([Buffer.from(body)]) as unknown as IncomingMessage,
  }
  const sockets = { 'a socket that is not connected': () => new Socket(), null: () => null, undefined: () => undefined }
  for (const [name, createSocket] of Object.entries(sockets)) {
    requests[`as an IncomingMessage with ${name}`] = (body) => {
      const request = new IncomingMessage(createSocket()!)
      request.push(body)
      request.push(null)
      return request
    }
  }

  for (const [name, createRequest] of Object.entries(requests)) {
    for (const [what, asked, status] of [
      ['a plant', created, 200],
      ['a malformed body', malformed, 400],
      ['no token', rejected, 401],
    ] as const) {
      test(`${name} gets its response immediately: ${what}`, async () => {
        const request = createRequest(String(asked.body))
        const { response, sent } = createPair(request, asked)
        createPlantStore({ authenticate })(request, response)
        await passTicks()
        assert.match(sent(), new RegExp(`^HTTP/1\\.1 ${status} [^]*}(?:\r\n0\r\n\r\n)?$`))
        assert.ok(response.writableEnded)
      })
    }
  }

  for (const [name, socket] of Object.entries({
    'a Socket that is not connected': new Socket(),
    'an EventEmitter': new EventEmitter(),
    'an object': {},
  })) {
    test(`with ${name} for a socket gets its response through a ServerResponse that has none`, async () => {
      const request = Object.assign(new IncomingMessage(new Socket()), { socket })
      request.push(created.body)
      request.push(null)
      Object.assign(request, { method: 'POST', url: '/plants', headers: headersOf(created) })
      const response = new ServerResponse(request)
      createPlantStore({ authenticate })(request, response)
      await passTicks()
      assert.deepEqual([response.statusCode, response.writableEnded], [200, true])
    })
  }

  test('without a connection and without the end of its body is rejected immediately', async () => {
    const request = new IncomingMessage(new Socket())
    const { response } = createPair(request, rejected)
    createPlantStore({ authenticate })(request, response)
    await passTicks()
    assert.deepEqual([response.statusCode, response.writableEnded], [401, true])
  })
})
