import assert from 'node:assert/strict'
import type { Server } from 'node:http'
import { suite, test, type TestContext } from 'node:test'
import { setImmediate as nextTick } from 'node:timers/promises'
import { memoryStore, StoreUnavailableError, type PlantStoreOptions } from '../../src/index.ts'
import { overrideStore } from '../support/override-store.ts'
import { DeferredCall } from '../support/deferred-call.ts'
import { del, get, listStoredIds, post, sendRequest, servePlants, type TestRequest } from '../support/service.ts'

const UNEXPECTED = [50000, 'An internal error occurred.'] as const
const UNAVAILABLE = [50300, 'The store is temporarily unavailable. The request had no effect; try again.'] as const
const TIMED_OUT = [
  50301,
  'The store failed or did not respond in time. It is unknown whether the request took effect.',
] as const

const REJECTED_WITH_NULL: PromiseLike<never> = {
  then: (_, onRejected) => Promise.resolve(onRejected?.(null) as never),
}
const neverSettles = new Promise<never>(() => undefined)
const fault = new Error('SELECT * FROM plants')
const unavailable = new StoreUnavailableError('db.internal:5432 is away')
const connectionLost = new StoreUnavailableError('db.internal:5432 was lost', { isOutcomeUnknown: true })

/** Sends a request, and asserts that the response is an error. */
async function assertError(server: Server, request: TestRequest, error: number, message: string): Promise<void> {
  const [status, body] = [Math.trunc(error / 100), JSON.stringify({ error, message })]
  const retry = status === 503 ? { 'retry-after': '1' } : {}
  const own = { 'content-type': 'application/json', 'content-length': String(body.length), 'cache-control': 'no-store' }
  const headers = { ...own, ...retry }
  assert.deepEqual(await sendRequest(server, request), { status, headers, body })
}

const requests: Readonly<Record<'create' | 'list' | 'delete', TestRequest>> = {
  create: post('ada', '{"id":7,"name":"Fern"}'),
  list: get('ada'),
  delete: del('ada', '7'),
}

type Fault = readonly [name: string, call: () => unknown, expected: readonly [number, string], reported: unknown]

const createThrower = (error: Error) => (): never => {
  throw error
}

const FAULTS: readonly Fault[] = [
  ['throws', createThrower(fault), UNEXPECTED, fault],
  ['rejects', () => Promise.reject(fault), UNEXPECTED, fault],
  ['rejects with null', () => REJECTED_WITH_NULL, UNEXPECTED, null],
  [
    'throws an error with a status',
    createThrower(Object.assign(new Error('a teapot'), { status: 418, statusCode: 418 })),
    UNEXPECTED,
    new Error('a teapot'),
  ],
  ['rejects with a StoreUnavailableError', () => Promise.reject(unavailable), UNAVAILABLE, unavailable],
  ['throws a StoreUnavailableError', createThrower(unavailable), UNAVAILABLE, unavailable],
  ['rejects with an unknown outcome', () => Promise.reject(connectionLost), TIMED_OUT, connectionLost],
  ['never settles', () => neverSettles, TIMED_OUT, new Error('The store did not respond within 20 ms.')],
]

/** Sends a request to a service with a fault, and asserts the response and the error that the host gets. */
async function assertFault(
  t: TestContext,
  options: Partial<PlantStoreOptions>,
  request: TestRequest,
  [, , expected, reported]: Fault,
): Promise<void> {
  const errors: unknown[] = []
  const onError = (error: unknown): unknown => errors.push(error)
  const server = await servePlants(t, { ...options, storeTimeoutMs: 20, onError })
  await assertError(server, request, ...expected)
  const messages = [...errors, reported].map((error) => (error instanceof Error ? error.message : error))
  assert.deepEqual(messages, [messages.at(-1), messages.at(-1)])
}

for (const method of ['create', 'list', 'delete'] as const) {
  suite(`a store with a ${method}()`, () => {
    for (const row of FAULTS) {
      const [name, call, [code]] = row
      test(`that ${name} results in ${code}`, async (t) => {
        const store = overrideStore(memoryStore(), { [method]: call })
        await assertFault(t, { store }, requests[method], row)
      })
    }
  })
}

const invalidHolder = new Error(
  'authenticate must return an owner, a non-empty string of well-formed Unicode without U+0000, ' +
    'or an object with only an owner and an access, "read" or "write"',
)
const AUTHENTICATE_FAULTS: readonly Fault[] = [
  ...FAULTS.slice(0, 6),
  ['rejects with an unknown outcome', () => Promise.reject(connectionLost), UNAVAILABLE, connectionLost],
  ['throws an error with an unknown outcome', createThrower(connectionLost), UNAVAILABLE, connectionLost],
  ['never settles', () => neverSettles, UNAVAILABLE, new Error('authenticate did not respond within 20 ms.')],
  ['returns an invalid owner', () => 'a\0b', UNEXPECTED, invalidHolder],
  ['returns a number', () => 42, UNEXPECTED, invalidHolder],
  ['returns a holder without an access level', () => ({ owner: 'ada', acces: 'read' }), UNEXPECTED, invalidHolder],
]

suite('an authenticate function', () => {
  for (const row of AUTHENTICATE_FAULTS) {
    const [name, call, [code]] = row
    test(`that ${name} results in ${code}`, (t) =>
      assertFault(t, { authenticate: call as () => string }, requests.list, row))
  }

  for (const [name, result] of [
    ['null', null],
    ['undefined', undefined],
    ['a promise of null', Promise.resolve(null)],
  ] as const) {
    test(`rejects the token by returning ${name}`, async (t) => {
      const server = await servePlants(t, { authenticate: () => result })
      assert.equal((await sendRequest(server, requests.list)).status, 401)
    })
  }

  test('authenticate receives the token and the request', async (t) => {
    const server = await servePlants(t, {
      authenticate: (token, request) => (token === 'a+/==' && request.url === '/plants' ? 'ada' : null),
    })
    assert.equal((await sendRequest(server, get('a+/=='))).status, 200)
  })
})

suite('a validate function', () => {
  const invalidResult = (value: string): TypeError =>
    new TypeError(`validate must return a message or nothing, or a promise of either, not ${value}`)
  const results: readonly [name: string, result: unknown, status: number, message?: string, error?: Error][] = [
    ['returns a message', 'name must not be Fern', 400, 'name must not be Fern'],
    ['returns a non-ASCII message', 'Wähle 楓 🌵', 400, 'Wähle 楓 🌵'],
    ['returns undefined', undefined, 200],
    ['returns null', null, 200],
    ['returns an empty message', '', 200],
    ['returns false', false, 500, UNEXPECTED[1], invalidResult('false')],
    ['returns an object', { message: 'no' }, 500, UNEXPECTED[1], invalidResult('[Object]')],
  ]
  for (const [name, result, status, message, error] of results) {
    for (const [when, validate] of [
      ['', () => result],
      [' in a promise', () => Promise.resolve(result)],
      [' in a thenable', () => ({ then: (settle: (value: unknown) => void) => settle(result) })],
    ] as const) {
      test(`that ${name}${when} results in ${status}`, async (t) => {
        const store = memoryStore()
        const errors: unknown[] = []
        const server = await servePlants(t, {
          store,
          validate: validate as PlantStoreOptions['validate'] & object,
          onError: (error) => errors.push(error),
        })
        const received = await sendRequest(server, requests.create)
        assert.equal(received.status, status)
        assert.equal((JSON.parse(received.body) as { message?: string }).message, message)
        assert.deepEqual(errors, error === undefined ? [] : [error])
        assert.deepEqual(await listStoredIds(store), status === 200 ? [7n] : [])
      })
    }
  }

  for (const [name, error, expected] of [
    ['an error', fault, UNEXPECTED],
    ['a StoreUnavailableError', unavailable, UNAVAILABLE],
    ['a StoreUnavailableError with an unknown outcome', connectionLost, UNAVAILABLE],
  ] as const) {
    for (const [how, validate] of [
      ['throws', createThrower(error)],
      ['rejects with', () => Promise.reject(error)],
    ] as const) {
      test(`that ${how} ${name} results in ${expected[0]}`, async (t) => {
        const store = memoryStore()
        await assertFault(t, { store, validate }, requests.create, [name, validate, expected, error])
        assert.deepEqual(await listStoredIds(store), [])
      })
    }
  }

  test('a plant is not created if validate settles after its timeout', async (t) => {
    const store = memoryStore()
    const verdict = new DeferredCall<undefined>()
    const options = { store, storeTimeoutMs: 20, validate: () => verdict.call() }
    const error = new StoreUnavailableError('validate did not respond within 20 ms.')
    await assertFault(t, options, requests.create, ['takes too long', options.validate, UNAVAILABLE, error])
    verdict.resolve(undefined)
    await nextTick()
    assert.deepEqual(await listStoredIds(store), [])
  })

  test('validate receives the plant, the owner and the request', async (t) => {
    const server = await servePlants(t, {
      validate: ({ id, name, tag }, { owner, request }) => `${id} ${name} ${tag} ${owner} ${request.url}`,
    })
    const { body } = await sendRequest(server, requests.create)
    assert.deepEqual(JSON.parse(body), { error: 40002, message: '7 Fern undefined ada /plants' })
  })
})

suite('an onError function', () => {
  for (const [name, onError] of [
    ['throws', createThrower(fault)],
    ['rejects', () => Promise.reject(fault)],
    ['never settles', () => neverSettles],
  ] as const) {
    test(`that ${name} doesn't change the response`, async (t) => {
      const server = await servePlants(t, { authenticate: createThrower(fault), onError })
      await assertError(server, requests.list, ...UNEXPECTED)
    })
  }

  test('onError receives the request', async (t) => {
    const urls: unknown[] = []
    const server = await servePlants(t, { authenticate: createThrower(fault), onError: (_, { url }) => urls.push(url) })
    await sendRequest(server, get('ada', '/plants?limit=1'))
    assert.deepEqual(urls, ['/plants?limit=1'])
  })

  test("onError isn't called for invalid requests", async (t) => {
    const errors: unknown[] = []
    const server = await servePlants(t, { onError: (error) => errors.push(error) })
    for (const request of [del('ada', 'x'), post('ada', '{'), del('ada', '1'), { ...get('ada'), fields: [] }]) {
      await sendRequest(server, request)
    }
    assert.deepEqual(errors, [])
  })
})

test('failed requests emit a single process warning, which contains no tokens, if onError is not set', async (t) => {
  const warnings: string[] = []
  const keep = (warning: Error): unknown => warnings.push(String(warning))
  process.on('warning', keep)
  t.after(() => process.off('warning', keep))
  const authenticate = (token: string): never => createThrower(new Error(`no owner of ${token}, none of ${token}s`))()
  const server = await servePlants(t, { authenticate })
  for (const token of ['se.cret', 'other']) await assertError(server, get(token), ...UNEXPECTED)
  assert.deepEqual(warnings, [
    'PlantStoreWarning: A request failed: no owner of …, none of …s (set the option onError to get every such error)',
  ])
})

suite('onResponse', () => {
  test('onResponse receives an event for a successful response', async (t) => {
    const events: unknown[] = []
    const server = await servePlants(t, {
      onResponse({ request, durationMs, ...event }) {
        const isPlausible = durationMs >= 0 && durationMs <= performance.now() - start
        events.push({ ...event, method: request.method, isPlausible })
      },
    })
    const start = performance.now()
    const { body } = await sendRequest(server, requests.create)
    const { length } = body
    const event = { resource: '/plants', owner: 'ada', status: 200, error: undefined, bytes: length, complete: true }
    assert.deepEqual(events, [{ ...event, method: 'POST', isPlausible: true }])
  })

  test('onResponse receives an event for an error response', async (t) => {
    const events: unknown[] = []
    const server = await servePlants(t, {
      onResponse: ({ resource, owner, status, error }) => events.push({ resource, owner, status, error }),
    })
    await sendRequest(server, { ...get('ada'), fields: [] })
    await sendRequest(server, get('ada', '/nothing'))
    assert.deepEqual(events, [
      { resource: '/plants', owner: undefined, status: 401, error: 40100 },
      { resource: undefined, owner: undefined, status: 404, error: 40400 },
    ])
  })

  test("an exception in onResponse doesn't change the response", async (t) => {
    const server = await servePlants(t, { onResponse: createThrower(fault) })
    assert.equal((await sendRequest(server, requests.list)).body, '[]')
  })
})
