import assert from 'node:assert/strict'
import { EventEmitter } from 'node:events'
import { suite, test } from 'node:test'
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
