import { EventEmitter } from 'node:events'
import { toFetchResponse, toReqRes } from 'fetch-to-node'
import { inject } from 'light-my-request'
import { createMocks, type RequestMethod } from 'node-mocks-http'
import serverless from 'serverless-http'
import type { PlantStore } from '../../src/index.ts'
import { toAnswer, type Answer, type Request } from '../support/wire/service.ts'

/** What calls a service with a request that came over no connection. */
export interface Adapter {
  readonly name: string
  readonly call: (plantStore: PlantStore, request: Request) => Promise<Answer>
}

/** The fields of a request that has each of them once. */
function headersOf({ fields }: Request): Record<string, string> {
  const headers: Record<string, string> = {}
  for (let i = 0; i < fields.length; i += 2) headers[fields[i]!] = fields[i + 1]!
  return headers
}

/** AWS Lambda; the request has no `rawHeaders`. */
const SERVERLESS_HTTP: Adapter = {
  name: 'serverless-http',
  async call(plantStore, request) {
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
}

/** Plain objects: no `rawHeaders`, no streams, and a `write` that returns nothing. The body is there already. */
const NODE_MOCKS_HTTP: Adapter = {
  name: 'node-mocks-http',
  async call(plantStore, request) {
    const { method, path, body = '' } = request
    const length = { 'content-length': String(Buffer.byteLength(body)) }
    const { req, res } = createMocks(
      {
        method: method as RequestMethod,
        url: path,
        headers: { ...headersOf(request), ...length },
        body: Buffer.from(body),
      },
      { eventEmitter: EventEmitter },
    )
    const ended = new Promise((resolve) => res.on('end', resolve))
    plantStore(req, res)
    await ended
    return toAnswer(res.statusCode, res.getHeaders(), res._getData() as string)
  },
}

const LIGHT_MY_REQUEST: Adapter = {
  name: 'light-my-request',
  async call(plantStore, request) {
    const { method, path, body } = request
    const { statusCode, headers, payload } = await inject((req, res) => plantStore(req, res), {
      method: method as 'GET',
      url: path,
      headers: headersOf(request),
      ...(body !== undefined && { payload: Buffer.from(body) }),
    })
    return toAnswer(statusCode, headers, payload)
  },
}

/** Workers that have `fetch`; neither the request nor the response has a socket. */
const FETCH_TO_NODE: Adapter = {
  name: 'fetch-to-node',
  async call(plantStore, request) {
    const { method, path, body } = request
    const init = { method, headers: headersOf(request), ...(body !== undefined && { body }) }
    const { req, res } = toReqRes(new Request(`http://host${path}`, init))
    plantStore(req, res)
    const response = await toFetchResponse(res)
    return toAnswer(response.status, Object.fromEntries(response.headers), await response.text())
  },
}

export const ADAPTERS: readonly Adapter[] = [SERVERLESS_HTTP, NODE_MOCKS_HTTP, LIGHT_MY_REQUEST, FETCH_TO_NODE]
