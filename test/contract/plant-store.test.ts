import assert from 'node:assert/strict'
import { once, type EventEmitter } from 'node:events'
import { createServer, IncomingMessage, ServerResponse, type RequestListener } from 'node:http'
import { Socket } from 'node:net'
import { suite, test } from 'node:test'
import type { HostRequest } from '../../src/index.ts'
import { serveAndConnect } from '../support/client.ts'
import { importPeer, skipWithoutPeers } from '../support/extra-packages.ts'
import { RawConnection } from '../support/raw-connection.ts'
import { bearer, createService, get, sendRequest, serve, servePlants } from '../support/service.ts'
import { waitUntil } from '../support/wait-until.ts'
import { createStoreWithPlants } from '../support/plant-list.ts'

test('calls next() for a path that the service does not serve', async (t) => {
  const plants = createService()
  const server = await serve(
    t,
    createServer((request, response) => plants(request, response, () => response.end('next'))),
  )
  const [other, own] = await Promise.all(
    ['/other', '/plants'].map((path) => sendRequest(server, { method: 'GET', path, fields: [] })),
  )
  assert.deepEqual([other!.status, other!.body, own!.status], [200, 'next', 401])
})

for (const basePath of ['', '/api/v1', '/$&']) {
  test(`responds to an unknown path with 40400 and the path of the plants (basePath "${basePath}")`, async (t) => {
    const server = await servePlants(t, { basePath })
    const { status, body } = await sendRequest(server, { method: 'GET', path: `${basePath}/plants/`, fields: [] })
    const message = `There is no resource at this path. The plants are at ${basePath}/plants.`
    assert.deepEqual([status, body], [404, JSON.stringify({ error: 40400, message })])
  })
}

// Node's HTTP/1 parser rejects unknown methods, but HTTP/2 allows any method name.
test('responds with 405 to methods named after properties of Object.prototype', async (t) => {
  const client = await serveAndConnect(t, 'h2c', createService())
  for (const method of ['constructor', 'toString', '__proto__']) {
    const { status, headers } = await client.send({ method, path: '/plants/1', fields: bearer('ada') })
    assert.deepEqual([status, headers['allow']], [405, 'DELETE, OPTIONS'])
  }
})

async function authenticateAfterBody(token: string, request: HostRequest): Promise<string> {
  await waitUntil(() => request.complete)
  return token
}

test('reads a body that arrives in several packets before authenticate has finished', async (t) => {
  const server = await servePlants(t, { authenticate: authenticateAfterBody })
  const client = await RawConnection.open(server)
  const fields = 'Host: a\r\nAuthorization: Bearer ada\r\nContent-Type: application/json\r\nContent-Length: 22\r\n'
  const started = once(server, 'request')
  client.send(`POST /plants HTTP/1.1\r\n${fields}\r\n{"id":1,`)
  await started
  client.send('"name":"Fern"}')
  assert.deepEqual(await client.readStatuses(1), [200])
})

const CHUNKED = 'Transfer-Encoding: chunked\r\n\r\n16\r\n{"id":1,"name":"Fern"}\r\n0\r\n\r\n'

for (const [what, framedBody, authenticate] of [
  ['Content-Length', 'Content-Length: 22\r\n\r\n{"id":1,"name":"Fern"}', (token: string) => token],
  ['chunks', CHUNKED, (token: string) => token],
  ['chunks, before authenticate has finished', CHUNKED, authenticateAfterBody],
] as const) {
  test(`accepts a body of maxBodyBytes, and no larger one, in one packet with ${what}`, async (t) => {
    const fields = 'Host: a\r\nAuthorization: Bearer ada\r\nContent-Type: application/json\r\n'
    const statuses = [22, 21].map(async (maxBodyBytes) => {
      const client = await RawConnection.open(await servePlants(t, { maxBodyBytes, authenticate }))
      return client.send(`POST /plants HTTP/1.1\r\n${fields}${framedBody}`).readStatuses(1)
    })
    assert.deepEqual(await Promise.all(statuses), [[200], [413]])
  })
}

test('limits every list to maxLimit plants', async (t) => {
  const store = createStoreWithPlants(3)
  const server = await servePlants(t, { store, maxLimit: 2 })
  for (const query of ['', '?limit=3', '?include=id', '?limit=3&include=id']) {
    const { headers, body } = await sendRequest(server, get('ada', `/plants${query}`))
    const include = query.includes('include') ? '&include=id' : ''
    assert.equal(headers['link'], `<plants?limit=2&after=2${include}>; rel="next"`)
    assert.equal((JSON.parse(body) as unknown[]).length, 2)
  }
})

/** The service, for calls with arguments that TypeScript would reject. */
const untypedService = createService() as unknown as (...args: unknown[]) => undefined

suite('the service throws a TypeError that describes invalid arguments', () => {
  const hint = 'pass the raw objects that your framework wraps, see docs/frameworks\\.md'
  for (const [name, got, ask] of [
    ['no arguments', /undefined, undefined/, () => new Promise(() => untypedService())],
    ['a web Request', /\[?Request.*, undefined/, () => new Promise(() => untypedService(new Request('http://a')))],
    ['a Koa context', /\[Object\], \[Function.*\]/, requestKoa],
    ['a Fastify request and reply', /\[Request\], \[Reply\]/, requestFastify],
  ] as const) {
    const message = new RegExp(
      `^plant-store must be called with a node:http request and response, not \\(.*${got.source}.*\\): ${hint}$`,
    )
    const skip = /Koa|Fastify/.test(name) && skipWithoutPeers
    test(name, { skip }, () => assert.rejects(ask, { name: 'TypeError', message }))
  }
})

interface Koa extends EventEmitter {
  use(middleware: typeof untypedService): this
  callback(): RequestListener
}

async function requestKoa(): Promise<unknown> {
  const { default: Koa } = await importPeer<{ default: new () => Koa }>('koa')
  return new Promise((_, reject) => {
    const app = new Koa().use(untypedService).on('error', reject)
    const request = new IncomingMessage(new Socket())
    app.callback()(request, new ServerResponse(request))
  })
}

type Fastify = Record<'all' | 'setErrorHandler' | 'inject', (...args: unknown[]) => Fastify>

async function requestFastify(): Promise<unknown> {
  const { fastify } = await importPeer<{ fastify: () => Fastify }>('fastify')
  return new Promise((_, reject) => fastify().all('/plants', untypedService).setErrorHandler(reject).inject('/plants'))
}
