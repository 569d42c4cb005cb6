import assert from 'node:assert/strict'
import { once, type EventEmitter } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import { Duplex, Readable, type Writable } from 'node:stream'
import { suite, test, type TestContext } from 'node:test'
import { memoryStore, StoreUnavailableError, type PlantStoreOptions, type ResponseEvent } from '../../src/index.ts'
import { serveAndConnect, type Client } from '../support/client.ts'
import { overrideStore } from '../support/override-store.ts'
import { EMPTY_PAGE, createPageAfter, createStoreWithPlants } from '../support/plant-list.ts'
import { createService, del, get, servePlants } from '../support/service.ts'
import { RawConnection } from '../support/raw-connection.ts'
import { DeferredCall } from '../support/deferred-call.ts'
import { waitUntil } from '../support/wait-until.ts'

const unavailable = new StoreUnavailableError('the database is away')
const failingStore = overrideStore(memoryStore(), {
  list: (_, { after = 0n }) => (after < 5000n ? createPageAfter(after) : Promise.reject(unavailable)),
})

/** Starts a service, and records the calls of `onError` and `onResponse`. */
async function serveAndRecord(
  t: TestContext,
  protocol: 'http' | 'h2c',
  options: Partial<PlantStoreOptions>,
  middleware: (response: ServerResponse) => void = () => undefined,
) {
  const reported = { errors: [] as unknown[], events: [] as Omit<ResponseEvent, 'request' | 'durationMs'>[] }
  const accepted: ServerResponse[] = []
  const service = createService({
    ...options,
    onError: (error) => reported.errors.push(error),
    onResponse: ({ resource, owner, status, error, bytes, complete }) =>
      reported.events.push({ resource, owner, status, error, bytes, complete }),
  })
  const connect = (): Promise<Client> =>
    serveAndConnect(t, protocol, (request, response) => {
      accepted.push(response)
      middleware(response)
      service(request, response)
    })
  return { client: await connect(), reported, accepted, connect }
}

type Reported = Awaited<ReturnType<typeof serveAndRecord>>['reported']

/** Sends a request whose client will disconnect. */
function openRequest(client: Client, request = get('ada')): Writable {
  const clientRequest = client.open(request)
  clientRequest.on('error', () => undefined).end()
  return clientRequest
}

/** Disconnects a client, and waits until the server has noticed. */
async function disconnect(request: Writable, response: ServerResponse): Promise<void> {
  const closed = once(response, 'close')
  request.destroy()
  await closed
}

/** Sends a request, and returns the emitter of its response body. */
async function openResponseBody(client: Client): Promise<EventEmitter> {
  const opened = openRequest(client)
  const [received] = (await once(opened, 'response')) as [object]
  // On HTTP/2, the request stream is also the response stream.
  return received instanceof Readable ? received : opened
}

for (const protocol of ['http', 'h2c'] as const) {
  suite(`a list on ${protocol}`, { timeout: 60_000 }, () => {
    const truncated = { resource: '/plants', owner: 'ada', status: 200, error: undefined, complete: false } as const

    /** Asserts that the host got these errors and one event, which differs from `truncated` as given. */
    async function assertReported(
      reported: Reported,
      event: Partial<ResponseEvent>,
      ...errors: unknown[]
    ): Promise<void> {
      await waitUntil(() => reported.events.length > 0)
      assert.deepEqual(reported, { errors, events: [{ ...truncated, ...event }] })
    }

    const onePage = overrideStore(memoryStore(), {
      list: (_, { after = 0n }) => (after === 0n ? createPageAfter() : EMPTY_PAGE),
    })

    test('onResponse reports a complete list', async (t) => {
      const { client, reported } = await serveAndRecord(t, protocol, { store: onePage })
      const { body } = await client.send(get('ada'))
      await assertReported(reported, { bytes: body.length, complete: true })
    })

    test('onResponse reports an incomplete list if the store fails halfway', async (t) => {
      const { client, reported } = await serveAndRecord(t, protocol, { store: failingStore })
      const body = await openResponseBody(client)
      let bytes = 0
      body.on('data', (chunk: Buffer) => (bytes += chunk.length)).on('error', () => undefined)
      await new Promise((resolve) => body.on('close', resolve))

      assert.equal(bytes, 5000 * '{"name":"Fern"},'.length)
      await assertReported(reported, { bytes }, unavailable)
    })

    test('onResponse reports an incomplete list if the client disconnects halfway', async (t) => {
      const store = overrideStore(memoryStore(), { list: (_, { after = 0n }) => createPageAfter(after) })
      const { client, reported, accepted } = await serveAndRecord(t, protocol, { store })
      await openResponseBody(client)
      const { stream = accepted[0]! } = accepted[0] as { stream?: Writable }
      await waitUntil(() => stream.writableNeedDrain)

      client.close()

      await waitUntil(() => reported.events.length > 0)
      const { bytes } = reported.events[0]!
      assert.ok(bytes > 65_536)
      await assertReported(reported, { bytes })
    })

    test('onResponse reports an incomplete list if the client disconnects before the last chunk is flushed', async (t) => {
      let isLast = false
      const { client, reported, accepted } = await serveAndRecord(t, protocol, { store: onePage }, (response) => {
        const write = response.write.bind(response)
        // Return false for the last chunk, as if the buffer were full.
        Object.assign(response, { write: (piece: Buffer) => write(piece) && !(isLast = String(piece) === ']') })
      })
      const request = openRequest(client)
      await waitUntil(() => isLast)

      await disconnect(request, accepted[0]!)

      await assertReported(reported, { bytes: 1000 * '{"name":"Fern"},'.length + 1 })
    })

    test('onResponse reports 0 bytes if the client disconnects before the first byte of the list', async (t) => {
      const page = new DeferredCall<void>()
      const store = overrideStore(memoryStore(), { list: () => page.call().then(() => createPageAfter(0n)) })
      const { client, reported, accepted } = await serveAndRecord(t, protocol, { store })
      const request = openRequest(client)
      await waitUntil(() => accepted.length > 0)

      await disconnect(request, accepted[0]!)
      page.resolve()

      await assertReported(reported, { bytes: 0 })
    })
  })
}

test('onResponse reports an incomplete list if the client disconnects while its end is being sent', async () => {
  const reported = new Promise<ResponseEvent>((onResponse) => {
    const server = createServer(createService({ store: createStoreWithPlants(2000), onResponse }))
    const connection = new Duplex({
      read: () => undefined,
      write: (chunk, _, callback) => (String(chunk).endsWith('0\r\n\r\n') ? connection.destroy() : callback()),
    })
    server.emit('connection', connection)
    connection.push('GET /plants HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ada\r\n\r\n')
  })
  assert.equal((await reported).complete, false)
})

test('a list that fails halfway does not look complete in HTTP/1.0, where it ends with the connection', async (t) => {
  const client = await RawConnection.open(await servePlants(t, { store: failingStore, onError: () => undefined }))
  client.send('GET /plants HTTP/1.0\r\nAuthorization: Bearer ada\r\n\r\n')
  assert.match(await client.closed, /<ECONNRESET>$/)
})

test('onResponse reports an incomplete response if the client disconnects during a DELETE', async (t) => {
  const outcome = new DeferredCall<boolean>()
  const store = overrideStore(memoryStore(), { delete: () => outcome.call() })
  const { client, reported, accepted } = await serveAndRecord(t, 'http', { store })
  const request = openRequest(client, del('ada', '1'))
  await waitUntil(() => accepted.length > 0)

  await disconnect(request, accepted[0]!)
  outcome.resolve(true)

  await waitUntil(() => reported.events.length > 0)
  const expected = { resource: '/plants/{id}', owner: 'ada', status: 204, error: undefined, bytes: 0, complete: false }
  assert.deepEqual(reported, { errors: [], events: [expected] })
})
