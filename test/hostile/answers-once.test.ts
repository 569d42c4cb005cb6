import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import { suite, test } from 'node:test'
import { memoryStore } from '../../src/index.ts'
import { serveIn } from '../support/wire/client.ts'
import { delegatingStore } from '../support/database/delegating-store.ts'
import { pageAfter } from '../support/database/plant-list.ts'
import { Held } from '../support/held.ts'
import { createService, get, post, send, serve } from '../support/wire/service.ts'
import { until } from '../support/until.ts'

const FERN = '{"id":1,"name":"Fern"}'
const CREATE = post('ada', FERN)
const JSON_FIELDS = { 'content-type': 'application/json', 'cache-control': 'no-store' }

for (const protocol of ['http', 'h2c'] as const) {
  suite(`answers once, in ${protocol}`, { timeout: 60_000 }, () => {
    test('a host ends a list that is being sent', async (t) => {
      let end: (() => void) | undefined
      const store = delegatingStore(memoryStore(), {
        list: (_, { after }) => {
          if (after !== undefined) end?.()
          return Promise.resolve(pageAfter(after))
        },
      })
      const plantStore = createService({ store })
      const client = await serveIn(t, protocol, (request, response) => {
        end = () => response.end()
        plantStore(request, response)
      })

      const { status, body } = await client.send(get('ada'))

      assert.equal(status, 200)
      assert.match(body, /^\[(?:{"name":"Fern"},?){1000}$/)
    })

    test('a client that leaves after its body does not stop the write', async (t) => {
      const held = new Held<unknown>()
      const memory = memoryStore()
      const store = delegatingStore(memory, {
        create: (owner, plant) => held.call().then(() => memory.create(owner, plant)),
      })
      const plantStore = createService({ store })
      let isClosed = false
      const client = await serveIn(t, protocol, (request, response) => {
        response.on('close', () => (isClosed = true))
        plantStore(request, response)
      })

      const request = client.open(CREATE).on('error', () => undefined)
      request.end(FERN)
      await held.called
      request.destroy()
      await until(() => isClosed)
      held.answer(undefined)

      assert.equal((await client.send(get('ada'))).body, '[{"name":"Fern"}]')
    })

    const sent = FERN.replace('"id":1,', '')
    const faults: readonly [method: 'writeHead' | 'end', isCalled: boolean, event: object][] = [
      ['writeHead', false, { status: 500, bytes: 0, complete: false }],
      ['end', false, { status: 200, bytes: 0, complete: false }],
      ['end', true, { status: 200, bytes: sent.length, complete: true }],
    ]
    for (const [method, isCalled, event] of faults) {
      test(`a response whose ${method} throws${isCalled ? ' at last' : ''} ends, is told of as it was sent, and the next one is answered`, async (t) => {
        const told: unknown[] = []
        const fault = new Error('wrapped')
        const plantStore = createService({
          onError: (error) => told.push(error),
          onResponse: ({ status, bytes, complete }) => told.push({ status, bytes, complete }),
        })
        const client = await serveIn(t, protocol, (request, response) => {
          const original = Reflect.get(response, method) as (...args: unknown[]) => unknown
          const wrapped = (...args: unknown[]): void => {
            if (isCalled) original.apply(response, args)
            throw fault
          }
          if (request.method === 'POST') Reflect.set(response, method, wrapped)
          plantStore(request, response)
        })

        if (isCalled) assert.equal((await client.send(CREATE)).body, sent)
        else await assert.rejects(client.send(CREATE))

        assert.deepEqual(told.splice(0), [fault, event])
        assert.equal((await client.send(get('ada'))).body, `[${sent}]`)
      })
    }

    test('a refusal whose writeHead throws ends, and is told of', async (t) => {
      const told: unknown[] = []
      const fault = new Error('wrapped')
      const plantStore = createService({
        onError: (error) => told.push(error),
        onResponse: ({ status, complete }) => told.push({ status, complete }),
      })
      const client = await serveIn(t, protocol, (request, response) => {
        response.writeHead = () => {
          throw fault
        }
        plantStore(request, response)
      })

      await assert.rejects(client.send(get('ada', '/plants?limit=x')))

      assert.deepEqual(told, [fault, { status: 400, complete: false }])
    })

    const whatHostsSet = [
      ['a plant', CREATE, 200, { ...JSON_FIELDS, 'content-length': '15' }],
      ['a list', get('many'), 200, JSON_FIELDS],
      ['nothing', { ...get('many', '/plants/1'), method: 'DELETE' }, 204, { 'cache-control': 'no-store' }],
    ] as const
    for (const [what, request, status, fields] of whatHostsSet) {
      test(`what the host set before gives way to ${what}`, async (t) => {
        const store = memoryStore()
        for (const plant of [...pageAfter().plants, ...pageAfter(1000n).plants]) void store.create('many', plant)
        const plantStore = createService({ store })
        const client = await serveIn(t, protocol, (request, response) => {
          response.statusCode = 404
          response.setHeader('content-type', 'text/html')
          response.setHeader('Content-Length', '1000')
          response.setHeader('cache-control', 'public, max-age=3600')
          response.setHeader('X-Host', 'kept')
          plantStore(request, response)
        })

        const answer = await client.send(request)

        assert.equal(answer.status, status)
        assert.deepEqual(answer.headers, { ...fields, 'x-host': 'kept' })
      })
    }

    test('nothing changes on the request, nor on who listens to the process', async (t) => {
      const plantStore = createService()
      const snapshots: unknown[] = []
      const client = await serveIn(t, protocol, (request, response) => {
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
      await until(() => snapshots.length === 2)

      assert.deepEqual(snapshots[1], snapshots[0])
    })
  })
}

test('a server that refuses a body if there must be none takes each answer', async (t) => {
  const server = await serve(t, createServer({ rejectNonStandardBodyWrites: true }, createService()))

  assert.equal((await send(server, { ...get('ada'), method: 'HEAD' })).status, 200)
  assert.equal((await send(server, { ...get('ada'), method: 'OPTIONS' })).status, 204)
})
