import assert from 'node:assert/strict'
import { AsyncLocalStorage } from 'node:async_hooks'
import { createServer, type Server } from 'node:http'
import { suite, test, type TestContext } from 'node:test'
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
import { pageAfter } from '../support/database/plant-source.ts'
import { RawConnection } from '../support/wire/raw-connection.ts'
import { createService, serve } from '../support/wire/service.ts'
import { until } from '../support/until.ts'

/** A request whose token and context have the same name. */
function head(method: string, path: string, name: string, fields = ''): string {
  return `${method} ${path} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${name}\r\n${fields}\r\n`
}

function post(name: string, body = `{"id":1,"name":"${name}"}`): string {
  return head('POST', '/plants', name, `Content-Type: application/json\r\nContent-Length: ${body.length}\r\n`) + body
}

/** What a host is called for. */
type Call = 'authenticate' | 'create' | 'list' | 'delete' | 'validate' | 'onResponse' | 'onError'

function nameOf({ headers }: HostRequest): string {
  return headers.authorization!.slice('Bearer '.length)
}

/** The lists of one owner are told apart by the plants that they ask for: `ada.1` asks for those beyond 10,000. */
function nameOfList(owner: string, { after = 0n }: PageRequest): string {
  return after < 10_000n ? owner : `${owner}.${after / 10_000n}`
}

/** A host that knows the request of each call by its async context alone, and serves plants. */
interface TracedHost {
  readonly service: PlantStore
  /** The calls of each name: those that had the context of another request are marked. */
  readonly calls: string[]
  /** Has a server run the whole of each request in a context, as what traces requests does. */
  readonly trace: (server: Server) => Server
}

function createHost(store: Partial<Store>, options: CommonOptions): TracedHost {
  const context = new AsyncLocalStorage<string>()
  const calls: string[] = []
  const note = (call: Call, name: string): void => {
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
  const trace = (server: Server): Server => {
    const emit = server.emit.bind(server) as (event: string, ...args: unknown[]) => boolean
    server.emit = (event: string, ...args: unknown[]) => {
      if (event !== 'request') return emit(event, ...args)
      return context.run(nameOf(args[0] as HostRequest), () => emit(event, ...args))
    }
    return server
  }
  return { service, calls, trace }
}

const SERVERS: readonly (readonly [string, (plants: PlantStore) => Server])[] = [
  ['node:http', (plants) => createServer(plants)],
  ['plant-store/server', (plants) => createPlantServer(plants).server],
]

/** Lists of 3,000 plants. */
const LONG: Partial<Store> = {
  list: (_, { after = 0n }) => (after % 10_000n === 3000n ? [] : pageAfter(after)),
}

interface Case {
  readonly name: string
  readonly store?: Partial<Store>
  readonly options?: CommonOptions
  /** Sends the requests, and settles when all are answered. */
  readonly send: (open: () => Promise<RawConnection>, host: TracedHost) => Promise<void>
  /** The calls, in any order. */
  readonly calls: readonly Call[]
}

/** Sends requests on one connection, and waits for their answers. */
async function pipeline(open: () => Promise<RawConnection>, ...requests: readonly string[]): Promise<void> {
  const client = await open()
  await client.send(requests.join('')).answers(requests.length)
}

const ALL: readonly Call[] = ['authenticate', 'onResponse']

const CASES: readonly Case[] = [
  {
    name: 'that waits behind another on its connection',
    send: (open) =>
      pipeline(open, post('ada'), head('GET', '/plants', 'bob'), head('DELETE', '/plants/1', 'eve'), post('dan')),
    calls: [...ALL, ...ALL, ...ALL, ...ALL, 'validate', 'create', 'list', 'delete', 'validate', 'create'],
  },
  {
    name: 'that waits and fails',
    store: { list: () => Promise.reject(new Error('lost')) },
    send: (open) =>
      pipeline(open, head('GET', '/plants', 'ada'), head('GET', '/plants', 'bob'), head('GET', '/plants', 'eve')),
    calls: [...ALL, ...ALL, ...ALL, 'list', 'list', 'list', 'onError', 'onError', 'onError'],
  },
  {
    name: 'that waits and whose store does not answer in time',
    store: { list: () => new Promise(() => undefined) },
    options: { storeTimeoutMs: 20 },
    send: (open) => pipeline(open, head('GET', '/plants', 'ada'), head('GET', '/plants', 'bob')),
    calls: [...ALL, ...ALL, 'list', 'list', 'onError', 'onError'],
  },
  {
    name: 'that waits and has a late body',
    async send(open, host) {
      const client = await open()
      const answers = client.answers(3)
      client.send(head('GET', '/plants', 'ada') + post('bob').slice(0, -10))
      await until(() => host.calls.length === 4)
      client.send(post('bob').slice(-10) + post('eve'))
      await answers
    },
    calls: [...ALL, ...ALL, ...ALL, 'list', 'validate', 'create', 'validate', 'create'],
  },
  {
    name: 'whose late body ends in one turn with those of others',
    async send(open, host) {
      const names = ['ada', 'bob', 'eve']
      const clients = await Promise.all(names.map(open))
      for (const [i, client] of clients.entries()) client.send(post(names[i]!).slice(0, -10))
      await until(() => host.calls.length === 3)
      for (const [i, client] of clients.entries()) client.send(post(names[i]!).slice(-10))
      await Promise.all(clients.map((client) => client.answers(1)))
    },
    calls: [...ALL, ...ALL, ...ALL, 'validate', 'create', 'validate', 'create', 'validate', 'create'],
  },
  {
    name: 'that is refused, behind another, before its body has come',
    async send(open) {
      const client = await open()
      client.send(post('ada') + head('POST', '/plants', 'bob', 'Content-Length: 5\r\n'))
      await client.receive(/415[^]*\}$/)
      client.send('12345')
      await client.closed
    },
    calls: [...ALL, ...ALL, 'validate', 'create'],
  },
  {
    name: 'for a long list, beside those of others',
    store: LONG,
    async send(open) {
      const names = ['ada', 'bob', 'eve', 'dan']
      const clients = await Promise.all(names.map(open))
      for (const [i, client] of clients.entries()) client.send(head('GET', '/plants?limit=2500', names[i]!))
      await Promise.all(clients.map((client) => client.answers(1)))
    },
    // A list with a limit is read twice.
    calls: [...ALL, ...ALL, ...ALL, ...ALL, ...Array.from({ length: 4 * 6 }, () => 'list' as const)],
  },
  {
    name: 'for a long list that waits for those of its owner',
    store: LONG,
    options: { maxListsPerOwner: 1 },
    async send(open) {
      const clients = await Promise.all([1, 2, 3].map(open))
      for (const [i, client] of clients.entries()) {
        client.send(head('GET', `/plants?after=${i + 1}0000`, `ada.${i + 1}`))
      }
      await Promise.all(clients.map((client) => client.answers(1)))
    },
    // Two of them read their first page again.
    calls: [...ALL, ...ALL, ...ALL, ...Array.from({ length: 3 * 4 + 2 }, () => 'list' as const)],
  },
]

for (const [name, create] of SERVERS) {
  suite(`in ${name}, each call for a request has its async context`, { timeout: 60_000 }, () => {
    for (const { name, store = {}, options = {}, send, calls } of CASES) {
      test(name, async (t: TestContext) => {
        const host = createHost(store, options)
        const server = await serve(t, host.trace(create(host.service)))
        await send(() => RawConnection.open(server), host)
        await until(() => host.calls.length >= calls.length)
        assert.deepEqual(host.calls.toSorted(), calls.toSorted())
      })
    }
  })
}
