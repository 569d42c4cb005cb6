import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type IncomingMessage } from 'node:http'
import { suite, test, type TestContext } from 'node:test'
import { setImmediate } from 'node:timers/promises'
import { memoryStore, type PlantStoreOptions } from '../../src/index.ts'
import { serveIn, type Client } from '../support/wire/client.ts'
import { delegatingStore } from '../support/database/delegating-store.ts'
import { pageAfter } from '../support/database/plant-source.ts'
import { Held } from '../support/held.ts'
import { createService, get, post, send, serve } from '../support/wire/service.ts'
import { until } from '../support/until.ts'

const FERN = '{"id":1,"name":"Fern"}'
const CREATE = post('ada', FERN)

/** Serves plants, and says when the last response has closed. */
async function serveClosing(
  t: TestContext,
  protocol: 'http' | 'h2c',
  options: Partial<PlantStoreOptions>,
): Promise<{ client: Client; closed: () => Promise<void> }> {
  const plantStore = createService(options)
  let isClosed = false
  const client = await serveIn(t, protocol, (request, response) => {
    isClosed = false
    response.on('close', () => (isClosed = true))
    plantStore(request, response)
  })
  return { client, closed: () => until(() => isClosed) }
}

for (const protocol of ['http', 'h2c'] as const) {
  suite(`answers once, in ${protocol}`, { timeout: 60_000 }, () => {
    test('a host answers while the store works', async (t) => {
      const held = new Held<boolean>()
      const plantStore = createService({ store: delegatingStore(memoryStore(), { create: () => held.call() }) })
      let ended: Promise<unknown> | undefined
      const client = await serveIn(t, protocol, (request, response) => {
        plantStore(request, response)
        ended = once(response, 'close')
        void held.called.then(() => response.writeHead(504).end('too slow'))
      })

      const { status, body } = await client.send(CREATE)
      held.answer(true)
      await ended

      assert.deepEqual([status, body], [504, 'too slow'])
    })

    test('a host destroys the response while the store works', async (t) => {
      const held = new Held<boolean>()
      const plantStore = createService({ store: delegatingStore(memoryStore(), { create: () => held.call() }) })
      const client = await serveIn(t, protocol, (request, response) => {
        plantStore(request, response)
        if (request.method === 'POST') void held.called.then(() => response.destroy())
      })

      await assert.rejects(client.send(CREATE))
      held.answer(true)
      await setImmediate()

      assert.equal((await client.send(get('ada'))).status, 200)
    })

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

    test('a client that leaves within its body, while its token is looked up, leaves no trace', async (t) => {
      const held = new Held<string>()
      const told: unknown[] = []
      const calls: unknown[] = []
      const { client, closed } = await serveClosing(t, protocol, {
        authenticate: () => held.call(),
        store: delegatingStore(memoryStore(), { create: (_, plant) => calls.push(plant) > 0 }),
        onError: (error) => told.push(error),
      })

      const request = client.open(CREATE).on('error', () => undefined)
      request.write(FERN.slice(0, -1))
      await held.called
      request.destroy()
      await closed()
      held.answer('ada')
      for (let turn = 0; turn < 3; turn++) await setImmediate()

      assert.deepEqual({ told, calls }, { told: [], calls: [] })
    })

    test('a client that leaves after its body does not stop the write', async (t) => {
      const held = new Held<unknown>()
      const memory = memoryStore()
      const store = delegatingStore(memory, {
        create: (owner, plant) => held.call().then(() => memory.create(owner, plant)),
      })
      const { client, closed } = await serveClosing(t, protocol, { store })

      const request = client.open(CREATE).on('error', () => undefined)
      request.end(FERN)
      await held.called
      request.destroy()
      await closed()
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

    const whatHostsSet = [
      ['a plant', CREATE, 200, { 'content-type': 'application/json', 'content-length': '15' }],
      ['a list', get('many'), 200, { 'content-type': 'application/json' }],
      ['nothing', { ...get('many', '/plants/1'), method: 'DELETE' }, 204, {}],
    ] as const
    for (const [what, request, status, fields] of whatHostsSet) {
      test(`what the host set before gives way to ${what}`, async (t) => {
        const store = memoryStore()
        for (const plant of [...pageAfter(), ...pageAfter(1000n)]) void store.create('many', plant)
        const plantStore = createService({ store })
        const client = await serveIn(t, protocol, (request, response) => {
          response.statusCode = 404
          response.setHeader('content-type', 'text/html')
          response.setHeader('Content-Length', '1000')
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

test('a client that leaves after its body, before its token is known, does not stop the write', async (t) => {
  const held = new Held<string>()
  const created: unknown[] = []
  const store = delegatingStore(memoryStore(), { create: (_, plant) => created.push(plant) > 0 })
  const plantStore = createService({ authenticate: () => held.call(), store })
  let request: IncomingMessage | undefined
  const client = await serveIn(t, 'http', (received, response) => {
    request = received
    plantStore(received, response)
  })

  const fields = [...CREATE.fields, 'Transfer-Encoding', 'chunked']
  const sent = client.open({ ...CREATE, fields, body: undefined })
  sent.on('error', () => undefined).write(FERN.slice(0, 5))
  sent.end(FERN.slice(5))
  await until(() => request?.complete === true)
  sent.destroy()
  await until(() => request?.closed === true)
  held.answer('ada')

  for (let turn = 0; turn < 5; turn++) await setImmediate()
  assert.deepEqual(created, [{ id: 1n, name: 'Fern' }])
})

test('a server that refuses a body if there must be none takes each answer', async (t) => {
  const server = await serve(t, createServer({ rejectNonStandardBodyWrites: true }, createService()))

  assert.equal((await send(server, { ...get('ada'), method: 'HEAD' })).status, 200)
  assert.equal((await send(server, { ...get('ada'), method: 'OPTIONS' })).status, 204)
})
