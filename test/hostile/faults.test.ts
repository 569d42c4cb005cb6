import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { Server } from 'node:http'
import { connect, type Socket } from 'node:net'
import { suite, test, type TestContext } from 'node:test'
import { setImmediate as nextRound } from 'node:timers/promises'
import { memoryStore, StoreUnavailableError, type PlantStoreOptions } from '../../src/index.ts'
import { delegatingStore } from '../support/database/delegating-store.ts'
import { Held } from '../support/held.ts'
import { until } from '../support/until.ts'
import {
  createService,
  del,
  get,
  keptIds,
  portOf,
  post,
  send,
  serve,
  servePlants,
  type Request,
} from '../support/wire/service.ts'

const UNEXPECTED = [50000, 'Something went wrong in the service.'] as const
const UNAVAILABLE = [50300, 'The plants are out of reach at the moment; try again.'] as const
const TIMED_OUT = [50301, 'The store did not answer in time; whether the request was carried out is unknown.'] as const

const REJECTED_WITH_NULL: PromiseLike<never> = {
  then: (_, onRejected) => Promise.resolve(onRejected?.(null) as never),
}
const never = new Promise<never>(() => undefined)
const fault = new Error('SELECT * FROM plants')
const away = new StoreUnavailableError('db.internal:5432 is away')
const lost = new StoreUnavailableError('db.internal:5432 was lost', { isOutcomeUnknown: true })

/** Sends a request, and sees that it is answered with an error. */
async function assertError(server: Server, request: Request, error: number, message: string): Promise<void> {
  const [status, body] = [Math.trunc(error / 100), JSON.stringify({ error, message })]
  const retry = status === 503 ? { 'retry-after': '1' } : {}
  const own = { 'content-type': 'application/json', 'content-length': String(body.length), 'cache-control': 'no-store' }
  const headers = { ...own, ...retry }
  assert.deepEqual(await send(server, request), { status, headers, body })
}

const requests: Readonly<Record<'create' | 'list' | 'delete', Request>> = {
  create: post('ada', '{"id":7,"name":"Fern"}'),
  list: get('ada'),
  delete: del('ada', '7'),
}

type Fault = readonly [name: string, answer: () => unknown, expected: readonly [number, string], told: unknown]

const fail = (error: Error) => (): never => {
  throw error
}

const FAULTS: readonly Fault[] = [
  ['throws', fail(fault), UNEXPECTED, fault],
  ['rejects', () => Promise.reject(fault), UNEXPECTED, fault],
  ['rejects with null', () => REJECTED_WITH_NULL, UNEXPECTED, null],
  [
    'throws an error with a status of its own',
    fail(Object.assign(new Error('a teapot'), { status: 418, statusCode: 418 })),
    UNEXPECTED,
    new Error('a teapot'),
  ],
  ['is unavailable', () => Promise.reject(away), UNAVAILABLE, away],
  ['is unavailable at once', fail(away), UNAVAILABLE, away],
  ['is lost in the middle', () => Promise.reject(lost), TIMED_OUT, lost],
  ['never settles', () => never, TIMED_OUT, new Error('The store did not answer within 20 ms.')],
]

/** Sends a request to a service of which something fails so, and sees what the client and the host are told. */
async function assertFault(
  t: TestContext,
  options: Partial<PlantStoreOptions>,
  request: Request,
  [, , expected, told]: Fault,
): Promise<void> {
  const errors: unknown[] = []
  const onError = (error: unknown): unknown => errors.push(error)
  const server = await servePlants(t, { ...options, storeTimeoutMs: 20, onError })
  await assertError(server, request, ...expected)
  const messages = [...errors, told].map((error) => (error instanceof Error ? error.message : error))
  assert.deepEqual(messages, [messages.at(-1), messages.at(-1)])
}

for (const method of ['create', 'list', 'delete'] as const) {
  suite(`a store whose ${method}`, () => {
    for (const row of FAULTS) {
      const [name, answer] = row
      test(name, async (t) => {
        const store = delegatingStore(memoryStore(), { [method]: answer })
        await assertFault(t, { store }, requests[method], row)
      })
    }
  })
}

const AUTHENTICATE: readonly Fault[] = [
  ...FAULTS.slice(0, 6),
  ['is lost in the middle', () => Promise.reject(lost), UNAVAILABLE, lost],
  ['is lost in the middle at once', fail(lost), UNAVAILABLE, lost],
  ['never settles', () => never, UNAVAILABLE, new Error('authenticate did not answer within 20 ms')],
  [
    'answers no owner',
    () => 'a\0b',
    UNEXPECTED,
    new Error('authenticate must return an owner: a non-empty string of well-formed Unicode without U+0000'),
  ],
  [
    'answers no access',
    () => ({ owner: 'ada', acces: 'read' }),
    UNEXPECTED,
    new Error('authenticate must return an access of "read" or "write", not undefined'),
  ],
]

suite('an authenticate that', () => {
  for (const row of AUTHENTICATE) {
    const [name, answer] = row
    test(name, (t) => assertFault(t, { authenticate: answer as () => string }, requests.list, row))
  }

  for (const [name, refusal] of [
    ['null', null],
    ['undefined', undefined],
    ['a promise of null', Promise.resolve(null)],
  ] as const) {
    test(`refuses with ${name}`, async (t) => {
      const server = await servePlants(t, { authenticate: () => refusal })
      assert.equal((await send(server, requests.list)).status, 401)
    })
  }

  test('is given the token and the request', async (t) => {
    const server = await servePlants(t, {
      authenticate: (token, request) => (token === 'a+/==' && request.url === '/plants' ? 'ada' : null),
    })
    assert.equal((await send(server, get('a+/=='))).status, 200)
  })
})

suite('a validate that', () => {
  const wrong = (value: string): TypeError =>
    new TypeError(`validate must return a message or nothing, or a promise of either, not ${value}`)
  const results: readonly [name: string, result: unknown, status: number, message?: string, error?: Error][] = [
    ['returns a message', 'name must not be Fern', 400, 'name must not be Fern'],
    ['returns a message beyond ASCII', 'Wähle 楓 🌵', 400, 'Wähle 楓 🌵'],
    ['returns undefined', undefined, 200],
    ['returns null', null, 200],
    ['returns an empty message', '', 200],
    ['returns false', false, 500, UNEXPECTED[1], wrong('false')],
    ['returns an object', { message: 'no' }, 500, UNEXPECTED[1], wrong('[Object]')],
  ]
  for (const [name, result, status, message, error] of results) {
    for (const [when, validate] of [
      ['', () => result],
      [' later', () => Promise.resolve(result)],
      [' later, in a thenable', () => ({ then: (settle: (value: unknown) => void) => settle(result) })],
    ] as const) {
      test(`${name}${when}: ${status}`, async (t) => {
        const store = memoryStore()
        const errors: unknown[] = []
        const server = await servePlants(t, {
          store,
          validate: validate as PlantStoreOptions['validate'] & object,
          onError: (error) => errors.push(error),
        })
        const received = await send(server, requests.create)
        assert.equal(received.status, status)
        assert.equal((JSON.parse(received.body) as { message?: string }).message, message)
        assert.deepEqual(errors, error === undefined ? [] : [error])
        assert.deepEqual(await keptIds(store), status === 200 ? [7n] : [])
      })
    }
  }

  for (const [name, error, expected] of [
    ['throws', fault, UNEXPECTED],
    ['is unavailable', away, UNAVAILABLE],
    ['is lost in the middle', lost, UNAVAILABLE],
  ] as const) {
    for (const [when, validate] of [
      ['', fail(error)],
      [', later', () => Promise.reject(error)],
    ] as const) {
      test(`${name}${when}: ${expected[0]}`, async (t) => {
        const store = memoryStore()
        await assertFault(t, { store, validate }, requests.create, [name, validate, expected, error])
        assert.deepEqual(await keptIds(store), [])
      })
    }
  }

  test('takes too long: 50300, and a late result creates nothing', async (t) => {
    const store = memoryStore()
    const verdict = new Held<undefined>()
    const options = { store, storeTimeoutMs: 20, validate: () => verdict.call() }
    const error = new StoreUnavailableError("validate didn't settle within 20 ms")
    await assertFault(t, options, requests.create, ['takes too long', options.validate, UNAVAILABLE, error])
    verdict.answer(undefined)
    await nextRound()
    assert.deepEqual(await keptIds(store), [])
  })

  test('settles after the client has disconnected: the plant is created', async (t) => {
    const store = memoryStore()
    const verdict = new Held<undefined>()
    const server = await servePlants(t, { store, validate: () => verdict.call() })
    const socket = connect(portOf(server), '127.0.0.1')
    const [accepted] = (await once(server, 'connection')) as [Socket]
    const body = requests.create.body as string
    const type = 'Content-Type: application/json'
    const head = `POST /plants HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ada\r\n${type}\r\n`
    socket.write(`${head}Content-Length: ${body.length}\r\n\r\n${body}`)
    await verdict.called
    const closed = once(accepted, 'close')
    socket.destroy()
    await closed
    verdict.answer(undefined)
    await until(async () => (await keptIds(store)).length > 0)
  })

  test('is given the plant, the owner and the request', async (t) => {
    const server = await servePlants(t, {
      validate: ({ id, name, tag }, { owner, request }) => `${id} ${name} ${tag} ${owner} ${request.url}`,
    })
    const { body } = await send(server, requests.create)
    assert.deepEqual(JSON.parse(body), { error: 40002, message: '7 Fern undefined ada /plants' })
  })
})

suite('an onError that', () => {
  for (const [name, onError] of [
    ['throws', fail(fault)],
    ['rejects', () => Promise.reject(fault)],
    ['never settles', () => never],
  ] as const) {
    test(`${name} changes nothing`, async (t) => {
      const server = await servePlants(t, { authenticate: fail(fault), onError })
      await assertError(server, requests.list, ...UNEXPECTED)
    })
  }

  test('is given the request', async (t) => {
    const urls: unknown[] = []
    const server = await servePlants(t, { authenticate: fail(fault), onError: (_, { url }) => urls.push(url) })
    await send(server, get('ada', '/plants?limit=1'))
    assert.deepEqual(urls, ['/plants?limit=1'])
  })

  test('is not told of what the client did wrong', async (t) => {
    const errors: unknown[] = []
    const server = await servePlants(t, { onError: (error) => errors.push(error) })
    for (const request of [del('ada', 'x'), post('ada', '{'), del('ada', '1'), { ...get('ada'), fields: [] }]) {
      await send(server, request)
    }
    assert.deepEqual(errors, [])
  })
})

test('onError is told if a middleware throws while a refusal is sent', async (t) => {
  const told: unknown[] = []
  const plants = createService({ onError: (error) => told.push(error) })
  const server = await serve(t, (request, response) => {
    plants(request, Object.assign(response, { writeHead: fail(fault) }))
  })
  await assert.rejects(send(server, { ...get('ada'), fields: [] }))
  assert.deepEqual(told, [fault])
})

test('without an onError the first failure is a warning of the process, which shows no token', async (t) => {
  const warnings: string[] = []
  const keep = (warning: Error): unknown => warnings.push(String(warning))
  process.on('warning', keep)
  t.after(() => process.off('warning', keep))
  const authenticate = (token: string): never => fail(new Error(`no owner of ${token}, none of ${token}s`))()
  const server = await servePlants(t, { authenticate })
  for (const token of ['se.cret', 'other']) await assertError(server, get(token), ...UNEXPECTED)
  assert.deepEqual(warnings, [
    'PlantStoreWarning: A request failed: no owner of …, none of …s (createPlantStore has no onError, which is told of each failure)',
  ])
})

suite('onResponse', () => {
  test('is told of each answer', async (t) => {
    const events: unknown[] = []
    const server = await servePlants(t, {
      onResponse({ request, durationMs, ...event }) {
        const isPossible = durationMs >= 0 && durationMs <= performance.now() - start
        events.push({ ...event, method: request.method, isPossible })
      },
    })
    const start = performance.now()
    const { body } = await send(server, requests.create)
    const { length } = body
    const event = { resource: '/plants', owner: 'ada', status: 200, error: undefined, bytes: length, complete: true }
    assert.deepEqual(events, [{ ...event, method: 'POST', isPossible: true }])
  })

  test('is told of a refusal', async (t) => {
    const events: unknown[] = []
    const server = await servePlants(t, {
      onResponse: ({ resource, owner, status, error }) => events.push({ resource, owner, status, error }),
    })
    await send(server, { ...get('ada'), fields: [] })
    await send(server, get('ada', '/nothing'))
    assert.deepEqual(events, [
      { resource: '/plants', owner: undefined, status: 401, error: 40100 },
      { resource: undefined, owner: undefined, status: 404, error: 40400 },
    ])
  })

  test('changes nothing if it throws', async (t) => {
    const server = await servePlants(t, { onResponse: fail(fault) })
    assert.equal((await send(server, requests.list)).body, '[]')
  })
})
