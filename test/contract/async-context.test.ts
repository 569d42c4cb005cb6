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
import { EMPTY_PAGE, pageAfter } from '../support/database/plant-list.ts'
import { RawConnection } from '../support/wire/raw-connection.ts'
import { createService, serve } from '../support/wire/service.ts'
import { until } from '../support/until.ts'

/** A request whose token and context have the same name. */
function head(method: string, path: string, name: string, fields = ''): string {
  return `${method} ${path} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${name}\r\n${fields}\r\n`
}

function list(name: string, query = ''): string {
  return head('GET', `/plants${query}`, name)
}

function post(name: string): string {
  const body = `{"id":1,"name":"${name}"}`
  return head('POST', '/plants', name, `Content-Type: application/json\r\nContent-Length: ${body.length}\r\n`) + body
}

function nameOf({ headers }: HostRequest): string {
  return headers.authorization!.slice('Bearer '.length)
}

/** The lists of one owner are told apart by the plants that they ask for: `ada.1` asks for those beyond 10,000. */
function nameOfList(owner: string, { after = 0n }: PageRequest): string {
  return after < 10_000n ? owner : `${owner}.${after / 10_000n}`
}

type Options = CommonOptions & { readonly authenticate?: (token: string) => string }

/** A host that knows the request of each call by its async context alone, and serves plants. */
function createHost(store: Partial<Store>, options: Options) {
  const context = new AsyncLocalStorage<string>()
  /** The names of the calls: those that had the context of another request say so. */
  const calls: string[] = []
  const note = (call: string, name: string): void => {
    const found = context.getStore() ?? 'none'
    calls.push(found === name ? call : `${call} of ${name} in the context of ${found}`)
  }
  const memory = { ...memoryStore(), ...store }
  const service = createService({
    store: {
      create: (owner, plant) => (note('create', owner), memory.create(owner, plant)),
      list: (owner, request) => (note('list', nameOfList(owner, request)), memory.list(owner, request)),
      delete: (owner, id) => (note('delete', owner), memory.delete(owner, id)),
    },
    authenticate: async (token) => {
      note('authenticate', token)
      await setImmediate()
      return token.split('.')[0]
    },
    validate: ({ name }) => (note('validate', name), null),
    onResponse: ({ request }) => note('onResponse', nameOf(request)),
    onError: (_, request) => note('onError', nameOf(request)),
    ...options,
  })
  /** Has a server run the whole of each request in a context, as what traces requests does. */
  function trace(server: Server): Server {
    const emit = server.emit.bind(server) as (event: string, ...args: unknown[]) => boolean
    server.emit = (event: string, ...args: unknown[]) => {
      if (event !== 'request') return emit(event, ...args)
      return context.run(nameOf(args[0] as HostRequest), () => emit(event, ...args))
    }
    return server
  }
  return { service, calls, trace }
}

const SERVERS: Readonly<Record<string, (plants: PlantStore) => Server>> = {
  'node:http': (plants) => createServer(plants),
  'plant-store/server': (plants) => createPlantServer(plants).server,
}

type Open = () => Promise<RawConnection>

/** Sends requests on one connection, and waits for their answers. */
async function pipeline(open: Open, ...requests: readonly string[]): Promise<void> {
  const client = await open()
  await client.send(requests.join('')).answers(requests.length)
}

/** Sends requests, each on a connection of its own, and waits for their answers. */
async function together(open: Open, ...requests: readonly string[]): Promise<void> {
  const clients = await Promise.all(requests.map(open))
  await Promise.all(clients.map((client, i) => client.send(requests[i]!).answers(1)))
}

/** Lists of 3,000 plants. */
const LONG: Partial<Store> = {
  list: (_, { after = 0n, limit }) => (after % 10_000n === 3000n ? EMPTY_PAGE : pageAfter(after, { limit })),
}

type Row = readonly [
  name: string,
  /** Sends the requests, and settles when all are answered. */
  send: (open: Open, calls: readonly string[]) => Promise<void>,
  /** How often each is called. */
  calls: Readonly<Record<string, number>>,
  store?: Partial<Store>,
  options?: Options,
]

const ROWS: readonly Row[] = [
  [
    'that waits behind another on its connection',
    (open) => pipeline(open, post('ada'), list('bob'), head('DELETE', '/plants/1', 'eve'), post('dan')),
    { authenticate: 4, onResponse: 4, validate: 2, create: 2, list: 1, delete: 1 },
  ],
  [
    'that waits and fails',
    (open) => pipeline(open, list('ada'), list('bob'), list('eve')),
    { authenticate: 3, onResponse: 3, list: 3, onError: 3 },
    { list: () => Promise.reject(new Error('lost')) },
  ],
  [
    'that waits and whose store does not answer in time',
    (open) => pipeline(open, list('ada'), list('bob')),
    { onResponse: 2, list: 2, onError: 2 },
    { list: () => new Promise(() => undefined) },
    // The timeout includes an asynchronous `authenticate`, which can take 20 ms on a busy machine.
    { storeTimeoutMs: 20, authenticate: (token) => token },
  ],
  [
    'that waits and has a late body',
    async (open, calls) => {
      const client = await open()
      const answers = client.answers(3)
      client.send(list('ada') + post('bob').slice(0, -10))
      await until(() => calls.length === 4)
      client.send(post('bob').slice(-10) + post('eve'))
      await answers
    },
    { authenticate: 3, onResponse: 3, list: 1, validate: 2, create: 2 },
  ],
  [
    'whose late body ends in one turn with those of others',
    async (open, calls) => {
      const bodies = ['ada', 'bob', 'eve'].map((name) => post(name))
      const clients = await Promise.all(bodies.map(open))
      for (const [i, client] of clients.entries()) client.send(bodies[i]!.slice(0, -10))
      await until(() => calls.length === 3)
      await Promise.all(clients.map((client, i) => client.send(bodies[i]!.slice(-10)).answers(1)))
    },
    { authenticate: 3, onResponse: 3, validate: 3, create: 3 },
  ],
  [
    'that is refused, behind another, before its body has come',
    async (open) => {
      const client = await open()
      client.send(post('ada') + head('POST', '/plants', 'bob', 'Content-Length: 5\r\n'))
      await client.receive(/415[^]*\}$/)
      await client.send('12345').closed
    },
    { authenticate: 2, onResponse: 2, validate: 1, create: 1 },
  ],
  [
    'for a long list, beside those of others',
    (open) => together(open, ...['ada', 'bob', 'eve', 'dan'].map((name) => list(name, '?limit=2500'))),
    // A list with a limit is read twice.
    { authenticate: 4, onResponse: 4, list: 4 * 6 },
    LONG,
  ],
  [
    'for a long list that waits for those of its owner',
    (open) => together(open, ...[1, 2, 3].map((n) => list(`ada.${n}`, `?after=${n}0000`))),
    // Two of them read their first page again.
    { authenticate: 3, onResponse: 3, list: 3 * 4 + 2 },
    LONG,
    { maxListsPerOwner: 1 },
  ],
]

for (const [name, create] of Object.entries(SERVERS)) {
  suite(`in ${name}, each call for a request has its async context`, { timeout: 60_000 }, () => {
    for (const [name, send, expected, store = {}, options = {}] of ROWS) {
      test(name, async (t) => {
        const { service, calls, trace } = createHost(store, options)
        const server = await serve(t, trace(create(service)))
        await send(() => RawConnection.open(server), calls)
        const all = Object.entries(expected).flatMap(([call, count]) => Array<string>(count).fill(call))
        await until(() => calls.length >= all.length)
        assert.deepEqual(calls.toSorted(), all.sort())
      })
    }
  })
}
