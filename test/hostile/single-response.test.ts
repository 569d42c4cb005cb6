import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import { suite, test } from 'node:test'
import { memoryStore } from '../../src/index.ts'
import { serveAndConnect } from '../support/client.ts'
import { overrideStore } from '../support/override-store.ts'
import { createPageAfter } from '../support/plant-list.ts'
import { DeferredCall } from '../support/deferred-call.ts'
import { createService, get, post, sendRequest, serve } from '../support/service.ts'
import { waitUntil } from '../support/wait-until.ts'

const FERN = '{"id":1,"name":"Fern"}'
const CREATE = post('ada', FERN)
const JSON_FIELDS = { 'content-type': 'application/json', 'cache-control': 'no-store' }

for (const protocol of ['http', 'h2c'] as const) {
  suite(`the service on ${protocol}`, { timeout: 60_000 }, () => {
    test('sends no more plants after the host has ended the response', async (t) => {
      let end: (() => void) | undefined
      const store = overrideStore(memoryStore(), {
        list: (_, { after }) => {
          if (after !== undefined) end?.()
          return Promise.resolve(createPageAfter(after))
        },
      })
      const plantStore = createService({ store })
      const client = await serveAndConnect(t, protocol, (request, response) => {
        end = () => response.end()
        plantStore(request, response)
      })

      const { status, body } = await client.send(get('ada'))

      assert.equal(status, 200)
      assert.match(body, /^\[(?:{"name":"Fern"},?){1000}$/)
    })

    test('creates the plant even if the client disconnects after sending the body', async (t) => {
      const gate = new DeferredCall<unknown>()
      const memory = memoryStore()
      const store = overrideStore(memory, {
        create: (owner, plant) => gate.call().then(() => memory.create(owner, plant)),
      })
      const plantStore = createService({ store })
      let isClosed = false
      const client = await serveAndConnect(t, protocol, (request, response) => {
        response.on('close', () => (isClosed = true))
        plantStore(request, response)
      })

      const request = client.open(CREATE).on('error', () => undefined)
      request.end(FERN)
      await gate.called
      request.destroy()
      await waitUntil(() => isClosed)
      gate.resolve(undefined)

      assert.equal((await client.send(get('ada'))).body, '[{"name":"Fern"}]')
    })

    const sent = FERN.replace('"id":1,', '')
    const faults: readonly [method: 'writeHead' | 'end', isCalled: boolean, body: string, event: object][] = [
      ['writeHead', false, FERN, { status: 500, bytes: 0, complete: false }],
      ['writeHead', false, '{', { status: 400, bytes: 0, complete: false }],
      ['end', false, FERN, { status: 200, bytes: 0, complete: false }],
      ['end', true, FERN, { status: 200, bytes: sent.length, complete: true }],
    ]
    for (const [method, isCalled, body, event] of faults) {
      const when = `${isCalled ? 'after' : 'without'} sending a response to ${body}`
      test(`reports the error to onError if ${method} throws ${when}`, async (t) => {
        const reported: unknown[] = []
        const fault = new Error('wrapped')
        const plantStore = createService({
          onError: (error) => reported.push(error),
          onResponse: ({ status, bytes, complete }) => reported.push({ status, bytes, complete }),
        })
        const client = await serveAndConnect(t, protocol, (request, response) => {
          const original = Reflect.get(response, method) as (...args: unknown[]) => unknown
          const wrapped = (...args: unknown[]): void => {
            if (isCalled) original.apply(response, args)
            throw fault
          }
          if (request.method === 'POST') Reflect.set(response, method, wrapped)
          plantStore(request, response)
        })

        if (isCalled) assert.equal((await client.send(post('ada', body))).body, sent)
        else await assert.rejects(client.send(post('ada', body)))

        assert.deepEqual(reported.splice(0), [fault, event])
        assert.equal((await client.send(get('ada'))).body, body === FERN ? `[${sent}]` : '[]')
      })
    }

    const overrides = [
      ['a created plant', CREATE, 200, { ...JSON_FIELDS, 'content-length': '15' }],
      ['a list', get('many'), 200, JSON_FIELDS],
      ['a 204 response', { ...get('many', '/plants/1'), method: 'DELETE' }, 204, { 'cache-control': 'no-store' }],
    ] as const
    for (const [what, request, status, fields] of overrides) {
      test(`replaces the status and headers that the host has set (${what})`, async (t) => {
        const store = memoryStore()
        for (const plant of [...createPageAfter().plants, ...createPageAfter(1000n).plants])
          void store.create('many', plant)
        const plantStore = createService({ store })
        const client = await serveAndConnect(t, protocol, (request, response) => {
          response.statusCode = 404
          response.setHeader('content-type', 'text/html')
          response.setHeader('Content-Length', '1000')
          response.setHeader('cache-control', 'public, max-age=3600')
          response.setHeader('X-Host', 'kept')
          plantStore(request, response)
        })

        const response = await client.send(request)

        assert.equal(response.status, status)
        assert.deepEqual(response.headers, { ...fields, 'x-host': 'kept' })
      })
    }

    test('leaves the request and the process listeners unchanged', async (t) => {
      const plantStore = createService()
      const snapshots: unknown[] = []
      const client = await serveAndConnect(t, protocol, (request, response) => {
        const snapshot = (): unknown => ({
          keys: Object.keys(request).filter((key) => !key.startsWith('_')),
          url: request.url,
          method: request.method,
          rawHeaders: [...request.rawHeaders],
          listening: process.eventNames().map((name) => [name, process.listenerCount(name)]),
        })
        snapshots.push(snapshot())
        response.on('close', () => snapshots.push(snapshot()))
        plantStore(request, response)
      })

      await client.send(CREATE)
      await waitUntil(() => snapshots.length === 2)

      assert.deepEqual(snapshots[1], snapshots[0])
    })
  })
}

test('responds to HEAD and OPTIONS even if rejectNonStandardBodyWrites is enabled', async (t) => {
  const server = await serve(t, createServer({ rejectNonStandardBodyWrites: true }, createService()))

  assert.equal((await sendRequest(server, { ...get('ada'), method: 'HEAD' })).status, 200)
  assert.equal((await sendRequest(server, { ...get('ada'), method: 'OPTIONS' })).status, 204)
})
