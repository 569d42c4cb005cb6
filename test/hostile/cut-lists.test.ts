import assert from 'node:assert/strict'
import { once, type EventEmitter } from 'node:events'
import type { ServerResponse } from 'node:http'
import { Readable, type Writable } from 'node:stream'
import { suite, test, type TestContext } from 'node:test'
import {
  memoryStore,
  StoreUnavailableError,
  type Page,
  type PlantStoreOptions,
  type ResponseEvent,
} from '../../src/index.ts'
import { serveIn, type Client } from '../support/wire/client.ts'
import { delegatingStore } from '../support/database/delegating-store.ts'
import { EMPTY_PAGE, pageAfter } from '../support/database/plant-list.ts'
import { createService, del, get } from '../support/wire/service.ts'
import { Held } from '../support/held.ts'
import { until } from '../support/until.ts'

const away = new StoreUnavailableError('the database is away')

/** Serves plants, and writes down what the host is told. */
async function serveTold(
  t: TestContext,
  protocol: 'http' | 'h2c',
  options: Partial<PlantStoreOptions>,
  middleware: (response: ServerResponse) => void = () => undefined,
) {
  const told = { errors: [] as unknown[], events: [] as Omit<ResponseEvent, 'request' | 'durationMs'>[] }
  const accepted: ServerResponse[] = []
  const service = createService({
    ...options,
    onError: (error) => told.errors.push(error),
    onResponse: ({ resource, owner, status, error, bytes, complete }) =>
      told.events.push({ resource, owner, status, error, bytes, complete }),
  })
  const connect = (): Promise<Client> =>
    serveIn(t, protocol, (request, response) => {
      accepted.push(response)
      middleware(response)
      service(request, response)
    })
  return { client: await connect(), told, accepted, connect }
}

type Told = Awaited<ReturnType<typeof serveTold>>['told']

/** Makes a response keep what is written until its end. */
function sendAtEnd(response: ServerResponse): void {
  const kept: Buffer[] = []
  Object.assign(response, {
    write: (chunk: string) => kept.push(Buffer.from(chunk)) > 0,
    // Both are Node's own again: in HTTP/2 one calls the other.
    end() {
      Reflect.deleteProperty(response, 'write')
      Reflect.deleteProperty(response, 'end')
      response.end(Buffer.concat(kept))
    },
  })
}

/** Sends a request of a client that is going to leave. */
function ask(client: Client, request = get('ada')): Writable {
  const opened = client.open(request)
  opened.on('error', () => undefined).end()
  return opened
}

/** Has a client leave, and sees that the server knows. */
async function leave(request: Writable, response: ServerResponse): Promise<void> {
  const closed = once(response, 'close')
  request.destroy()
  await closed
}

/** Opens a request, and gives what it can be read from. */
async function openBody(client: Client): Promise<EventEmitter> {
  const opened = ask(client)
  const [received] = (await once(opened, 'response')) as [object]
  // In HTTP/2 that is the stream which the request was written to.
  return received instanceof Readable ? received : opened
}

for (const protocol of ['http', 'h2c'] as const) {
  suite(`what a host is told of a list in ${protocol}`, { timeout: 60_000 }, () => {
    const cut = { resource: '/plants', owner: 'ada', status: 200, error: undefined, complete: false } as const

    /** Sees that a host was told of one response, which differs so from one that is cut, and of these errors. */
    async function assertTold(told: Told, event: Partial<ResponseEvent>, ...errors: unknown[]): Promise<void> {
      await until(() => told.events.length > 0)
      assert.deepEqual(told, { errors, events: [{ ...cut, ...event }] })
    }

    test('that fails in its midst: status 200, what was sent, and that it is cut', async (t) => {
      const store = delegatingStore(memoryStore(), {
        list: (_, { after = 0n }) => (after < 5000n ? pageAfter(after) : Promise.reject(away)),
      })
      const { client, told } = await serveTold(t, protocol, { store })

      const body = await openBody(client)
      let bytes = 0
      body.on('data', (chunk: Buffer) => (bytes += chunk.length)).on('error', () => undefined)
      await new Promise((resolve) => body.on('close', resolve))

      assert.equal(bytes, 5000 * '{"name":"Fern"},'.length)
      await assertTold(told, { bytes }, away)
    })

    test('that fails before its first byte: it is no list, but an error', async (t) => {
      let reads = 0
      const store = delegatingStore(memoryStore(), {
        list: (_, { after = 0n }) => (++reads < 3 ? pageAfter(after) : Promise.reject(away)),
      })
      const { client, told } = await serveTold(t, protocol, { store })

      // The list is read twice: first to find where it ends, then to send it.
      const { status, body } = await client.send(get('ada', '/plants?limit=2000'))

      assert.deepEqual([status, reads], [503, 3])
      await assertTold(told, { status: 503, error: 50300, bytes: body.length, complete: true }, away)
    })

    test('whose client goes in its midst', async (t) => {
      const store = delegatingStore(memoryStore(), { list: (_, { after = 0n }) => pageAfter(after) })
      const { client, told, accepted } = await serveTold(t, protocol, { store })
      await openBody(client)
      const { stream = accepted[0]! } = accepted[0] as { stream?: Writable }
      await until(() => stream.writableNeedDrain)

      client.close()

      await until(() => told.events.length > 0)
      const { bytes } = told.events[0]!
      assert.ok(bytes > 65_536)
      await assertTold(told, { bytes })
    })

    test('whose client goes while its last piece waits for room', async (t) => {
      const store = delegatingStore(memoryStore(), {
        list: (_, { after = 0n }) => (after === 0n ? pageAfter() : EMPTY_PAGE),
      })
      let isLast = false
      const { client, told, accepted } = await serveTold(t, protocol, { store }, (response) => {
        const write = response.write.bind(response)
        // As if what stands before it had left no room.
        Object.assign(response, { write: (piece: Buffer) => write(piece) && !(isLast = String(piece) === ']') })
      })
      const request = ask(client)
      await until(() => isLast)

      await leave(request, accepted[0]!)

      await assertTold(told, { bytes: 1000 * '{"name":"Fern"},'.length + 1 })
    })

    test('whose client goes before a middleware has handed over all of it', async (t) => {
      const store = memoryStore()
      await store.create('ada', { id: 1n, name: 'x'.repeat(20_000_000) })
      const { client, told, accepted } = await serveTold(t, protocol, { store }, sendAtEnd)
      await openBody(client)
      await until(() => accepted[0]!.writableEnded)

      client.close()

      await assertTold(told, { bytes: '[{"name":""}]'.length + 20_000_000 })
    })

    test('whose client goes before a byte of it: the status that it would have got, and nothing sent', async (t) => {
      const page = new Held<void>()
      const store = delegatingStore(memoryStore(), { list: () => page.call().then(() => pageAfter(0n)) })
      const { client, told, accepted } = await serveTold(t, protocol, { store })
      const request = ask(client)
      await until(() => accepted.length > 0)

      await leave(request, accepted[0]!)
      page.answer()

      await assertTold(told, { bytes: 0 })
    })

    test('whose client goes while it waits for its turn: nothing more is read for it', async (t) => {
      let reads = 0
      const rest = new Promise<Page>((resolve) => t.after(() => resolve(EMPTY_PAGE)))
      const store = delegatingStore(memoryStore(), {
        list: (_, { after = 0n }) => (++reads, after === 0n ? pageAfter(after) : rest),
      })
      const { client, told, connect } = await serveTold(t, protocol, { store, maxListsPerOwner: 1 })
      await openBody(client)
      const request = ask(await connect())
      // Two pages for the list that does not end, and the first one of that which then waits.
      await until(() => reads === 3)

      request.destroy()

      await assertTold(told, { bytes: 0 })
      assert.equal(reads, 3)
    })

    test('whose client goes while the ids that a limit leaves are counted: nothing more is read for it', async (t) => {
      let reads = 0
      const page = new Held<void>()
      const store = delegatingStore(memoryStore(), {
        list: (_, { after = 0n }) => (++reads === 3 ? page.call().then(() => pageAfter(after)) : pageAfter(after)),
      })
      const { client, told, accepted } = await serveTold(t, protocol, { store })
      const request = ask(client, get('ada', '/plants?limit=400000'))
      await until(() => reads === 3)

      await leave(request, accepted[0]!)
      page.answer()

      await assertTold(told, { bytes: 0 })
      assert.equal(reads, 3)
    })

    test('that waits for its turn longer than a call of the store may take: it is no list, but an error', async (t) => {
      const store = delegatingStore(memoryStore(), { list: (_, { after = 0n }) => pageAfter(after) })
      const options = { store, storeTimeoutMs: 100, maxListsPerOwner: 1 }
      const { client, told, connect } = await serveTold(t, protocol, options)
      await openBody(client)

      const answer = await (await connect()).send(get('ada'))

      const body = '{"error":50300,"message":"The plants are out of reach at the moment; try again."}'
      const headers = {
        'content-type': 'application/json',
        'content-length': String(body.length),
        'cache-control': 'no-store',
        'retry-after': '1',
      }
      assert.deepEqual(answer, { status: 503, headers, body })
      const reason = 'The list has waited 100 ms for others to end: maxListsPerOwner is 1.'
      const event = { status: 503, error: 50300, bytes: body.length, complete: true } as const
      await assertTold(told, event, new StoreUnavailableError(reason))
    })
  })
}

test('a host is told that a client had gone before the response to what it had asked for', async (t) => {
  const outcome = new Held<boolean>()
  const store = delegatingStore(memoryStore(), { delete: () => outcome.call() })
  const { client, told, accepted } = await serveTold(t, 'http', { store })
  const request = ask(client, del('ada', '1'))
  await until(() => accepted.length > 0)

  await leave(request, accepted[0]!)
  outcome.answer(true)

  await until(() => told.events.length > 0)
  const expected = { resource: '/plants/{id}', owner: 'ada', status: 204, error: undefined, bytes: 0, complete: false }
  assert.deepEqual(told, { errors: [], events: [expected] })
})
