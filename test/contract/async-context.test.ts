import assert from 'node:assert/strict'
import { AsyncLocalStorage } from 'node:async_hooks'
import { createServer, type Server } from 'node:http'
import { suite, test } from 'node:test'
import { setImmediate } from 'node:timers/promises'
import {
  memoryStore,
  type HostRequest,
  type CommonOptions,
  type PlantStore,
  type PageRequest,
  type Store,
} from '../../src/index.ts'
import { createServer as createPlantServer } from '../../src/http-server/create-server.ts'
import { EMPTY_PAGE, createPageAfter } from '../support/plant-list.ts'
import { RawConnection } from '../support/raw-connection.ts'
import { createService, serve } from '../support/service.ts'
import { waitUntil } from '../support/wait-until.ts'

/** Creates a request whose token is also the name of its async context. */
function createRequest(method: string, path: string, name: string, fields = ''): string {
  return `${method} ${path} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${name}\r\n${fields}\r\n`
}

function createListRequest(name: string, query = ''): string {
  return createRequest('GET', `/plants${query}`, name)
}

function createPostRequest(name: string): string {
  const body = `{"id":1,"name":"${name}"}`
  return (
    createRequest('POST', '/plants', name, `Content-Type: application/json\r\nContent-Length: ${body.length}\r\n`) +
    body
  )
}

function getName({ headers }: HostRequest): string {
  return headers.authorization!.slice('Bearer '.length)
}

/** Distinguishes the lists of an owner by their `after`: `ada.1` lists the plants beyond 10,000. */
function getListName(owner: string, { after = 0n }: PageRequest): string {
  return after < 10_000n ? owner : `${owner}.${after / 10_000n}`
}

type Options = CommonOptions & { readonly authenticate?: (token: string) => string }

/** Creates a host that identifies the request of each call by the async context only. */
function createHost(store: Partial<Store>, options: Options) {
  const context = new AsyncLocalStorage<string>()
  /** The calls so far. Marks each call that runs in the context of another request. */
  const calls: string[] = []
  const recordCall = (call: string, name: string): void => {
    const contextName = context.getStore() ?? 'none'
    calls.push(contextName === name ? call : `${call} of ${name} in the context of ${contextName}`)
  }
  const memory = { ...memoryStore(), ...store }
  const service = createService({
    store: {
      create: (owner, plant) => (recordCall('create', owner), memory.create(owner, plant)),
      list: (owner, request) => (recordCall('list', getListName(owner, request)), memory.list(owner, request)),
      delete: (owner, id) => (recordCall('delete', owner), memory.delete(owner, id)),
    },
    authenticate: async (token) => {
      recordCall('authenticate', token)
      await setImmediate()
      return token.split('.')[0]
    },
    validate: ({ name }) => (recordCall('validate', name), null),
    onResponse: ({ request }) => recordCall('onResponse', getName(request)),
    onError: (_, request) => recordCall('onError', getName(request)),
    ...options,
  })
  /** Makes a server run each request in a context of its own, as tracing libraries do. */
  function trace(server: Server): Server {
    const emit = server.emit.bind(server) as (event: string, ...args: unknown[]) => boolean
    server.emit = (event: string, ...args: unknown[]) => {
      if (event !== 'request') return emit(event, ...args)
      return context.run(getName(args[0] as HostRequest), () => emit(event, ...args))
    }
    return server
  }
  return { service, calls, trace }
}

const SERVERS: Readonly<Record<string, (plants: PlantStore) => Server>> = {
  'node:http': (plants) => createServer(plants),
  'plant-store/server': (plants) => createPlantServer(plants).server,
}

type OpenConnection = () => Promise<RawConnection>

/** Sends requests on one connection, and waits for their responses. */
async function sendPipelined(open: OpenConnection, ...requests: readonly string[]): Promise<void> {
  const client = await open()
  await client.send(requests.join('')).readResponses(requests.length)
}

/** Sends each request on a connection of its own, and waits for the responses. */
async function sendConcurrently(open: OpenConnection, ...requests: readonly string[]): Promise<void> {
  const clients = await Promise.all(requests.map(open))
  await Promise.all(clients.map((client, i) => client.send(requests[i]!).readResponses(1)))
}

/** Overrides `list` so that each list has 3,000 plants. */
const LONG_LISTS: Partial<Store> = {
  list: (_, { after = 0n, limit }) => (after % 10_000n === 3000n ? EMPTY_PAGE : createPageAfter(after, { limit })),
}

type Row = readonly [
  name: string,
  /** Sends the requests, and resolves after the last response. */
  send: (open: OpenConnection, calls: readonly string[]) => Promise<void>,
  /** How often each function is called. */
  calls: Readonly<Record<string, number>>,
  store?: Partial<Store>,
  options?: Options,
]

const ROWS: readonly Row[] = [
  [
    'of a request that waits for an earlier request on its connection',
    (open) =>
      sendPipelined(
        open,
        createPostRequest('ada'),
        createListRequest('bob'),
        createRequest('DELETE', '/plants/1', 'eve'),
        createPostRequest('dan'),
      ),
    { authenticate: 4, onResponse: 4, validate: 2, create: 2, list: 1, delete: 1 },
  ],
  [
    'of a queued request that fails',
    (open) => sendPipelined(open, createListRequest('ada'), createListRequest('bob'), createListRequest('eve')),
    { authenticate: 3, onResponse: 3, list: 3, onError: 3 },
    { list: () => Promise.reject(new Error('lost')) },
  ],
  [
    'of a queued request whose store call times out',
    (open) => sendPipelined(open, createListRequest('ada'), createListRequest('bob')),
    { onResponse: 2, list: 2, onError: 2 },
    { list: () => new Promise(() => undefined) },
    // The timeout includes an asynchronous `authenticate`, which may take 20 ms on a busy machine.
    { storeTimeoutMs: 20, authenticate: (token) => token },
  ],
  [
    'of a queued request whose body arrives late',
    async (open, calls) => {
      const client = await open()
      const responses = client.readResponses(3)
      client.send(createListRequest('ada') + createPostRequest('bob').slice(0, -10))
      await waitUntil(() => calls.length === 4)
      client.send(createPostRequest('bob').slice(-10) + createPostRequest('eve'))
      await responses
    },
    { authenticate: 3, onResponse: 3, list: 1, validate: 2, create: 2 },
  ],
  [
    'of requests whose bodies end in the same event-loop tick',
    async (open, calls) => {
      const bodies = ['ada', 'bob', 'eve'].map((name) => createPostRequest(name))
      const clients = await Promise.all(bodies.map(open))
      for (const [i, client] of clients.entries()) client.send(bodies[i]!.slice(0, -10))
      await waitUntil(() => calls.length === 3)
      await Promise.all(clients.map((client, i) => client.send(bodies[i]!.slice(-10)).readResponses(1)))
    },
    { authenticate: 3, onResponse: 3, validate: 3, create: 3 },
  ],
  [
    'of a queued request that is rejected before its body has arrived',
    async (open) => {
      const client = await open()
      client.send(createPostRequest('ada') + createRequest('POST', '/plants', 'bob', 'Content-Length: 5\r\n'))
      await client.waitFor(/415[^]*\}$/)
      client.send('12345')
    },
    { authenticate: 2, onResponse: 2, validate: 1, create: 1 },
  ],
  [
    'of concurrent long lists for different owners',
    (open) => sendConcurrently(open, ...['ada', 'bob', 'eve', 'dan'].map((name) => createListRequest(name, ''))),
    { authenticate: 4, onResponse: 4, list: 4 * 4 },
    LONG_LISTS,
  ],
]

for (const [name, create] of Object.entries(SERVERS)) {
  suite(`${name} preserves the async context`, { timeout: 60_000 }, () => {
    for (const [row, send, expected, store = {}, options = {}] of ROWS) {
      test(`${row} (${name})`, async (t) => {
        const { service, calls, trace } = createHost(store, options)
        const server = await serve(t, trace(create(service)))
        await send(() => RawConnection.open(server), calls)
        const all = Object.entries(expected).flatMap(([call, count]) => Array<string>(count).fill(call))
        await waitUntil(() => calls.length >= all.length)
        assert.deepEqual(calls.toSorted(), all.sort())
      })
    }
  })
}
