import assert from 'node:assert/strict'
import { getEventListeners } from 'node:events'
import { suite, test, type TestContext } from 'node:test'
import { createPlantClient, type PlantClient, type PlantClientOptions } from '../../src/client/plant-client.ts'
import { hang, respond, startFaultyProxy } from '../support/wire/faulty-proxy.ts'
import { getPort, servePlants } from '../support/wire/service.ts'
import { waitUntil } from '../support/wait-until.ts'

const FERN = { id: 1n, name: 'Fern' }
const NOW = Date.UTC(2026, 0, 1)

const unavailable = (retryAfter?: string): Response =>
  Response.json(
    { error: 50300, message: 'unavailable' },
    { status: 503, headers: retryAfter === undefined ? {} : { 'Retry-After': retryAfter } },
  )

/** Creates a client with a fake `fetch` and fake timers. `random` is the value that `Math.random` returns. */
function connectTo(
  t: TestContext,
  respondNext: (init: RequestInit) => Promise<Response>,
  { random = 0, ...options }: Partial<PlantClientOptions> & { random?: number } = {},
): { client: PlantClient; requestTimes: number[]; runTimers: () => Promise<void> } {
  t.mock.timers.enable({ apis: ['setTimeout', 'Date'], now: NOW })
  t.mock.method(Math, 'random', () => random)
  const requestTimes: number[] = []
  const fetch = (_: string, init: RequestInit): Promise<Response> => {
    requestTimes.push(Date.now() - NOW)
    return respondNext(init)
  }
  const client = createPlantClient({ url: 'http://host', token: 'ada', fetch, ...options })
  /** Advances the time by one second at a time until the client has no timers left. */
  async function runTimers(): Promise<void> {
    for (let step = 0; step < 1000; step++) {
      await new Promise((resolve) => setImmediate(resolve))
      t.mock.timers.tick(125)
    }
  }
  return { client, requestTimes, runTimers }
}

suite('retries', () => {
  for (const [what, random, delays] of [
    ['without jitter', 0, [250, 500, 1000, 2000]],
    ['with half of the jitter', 0.5, [375, 750, 1500, 3000]],
  ] as const) {
    test(`back off exponentially ${what}`, async (t) => {
      const { client, requestTimes, runTimers } = connectTo(t, async () => Promise.resolve(unavailable()), { random })
      await Promise.all([assert.rejects(client.listPage(), { error: 50300 }), runTimers()])
      assert.deepEqual(requestTimes.map((time, index) => time - (requestTimes[index - 1] ?? 0)).slice(1), delays)
    })
  }

  for (const [what, retryAfter, delayMs] of [
    ['seconds', '3', 3000],
    ['a date', new Date(NOW + 7000).toUTCString(), 7000],
    ['a date in the past', new Date(NOW - 7000).toUTCString(), 250],
    ['less than the backoff', '0', 250],
    ['30 seconds', '30', 30_000],
    ['an infinite time', 'Infinity', 250],
    ['a negative time', '-5', 250],
    ['nonsense', 'soon', 250],
  ] as const) {
    test(`wait ${delayMs} ms if Retry-After is ${what}`, async (t) => {
      const { client, requestTimes, runTimers } = connectTo(t, async () => Promise.resolve(unavailable(retryAfter)), {
        retries: 1,
      })
      await Promise.all([assert.rejects(client.listPage()), runTimers()])
      assert.deepEqual(requestTimes, [0, delayMs])
    })
  }

  for (const [what, retryAfter] of [
    ['31 seconds', '31'],
    ['an hour', '3600'],
    ['a date in an hour', new Date(NOW + 3_600_000).toUTCString()],
  ] as const) {
    test(`aren't sent if Retry-After is ${what}`, async (t) => {
      const { client, requestTimes } = connectTo(t, async () => Promise.resolve(unavailable(retryAfter)))
      await assert.rejects(client.listPage(), { status: 503, error: 50300, message: 'unavailable' })
      assert.deepEqual(requestTimes, [0])
    })
  }

  test('end with the error of the last attempt', async (t) => {
    const cause = new TypeError('fetch failed')
    const { client, requestTimes, runTimers } = connectTo(t, () => Promise.reject(cause), { retries: 2 })
    const expected = { status: 0, error: undefined, message: 'no response', cause, isOutcomeUnknown: true }
    await Promise.all([assert.rejects(client.delete(1), expected), runTimers()])
    assert.equal(requestTimes.length, 3)
  })

  for (const status of [400, 401, 403, 404, 405, 409, 413, 415, 417, 431, 500, 501]) {
    test(`aren't sent after a response with status ${status}`, async (t) => {
      const proxy = await startFaultyProxy(t, [respond(status)])
      await assert.rejects(proxy.connect().listPage(), { status, isOutcomeUnknown: false })
      assert.equal(proxy.requests.length, 1)
    })
  }
})

suite('a timeout', () => {
  test('ends an attempt', async (t) => {
    const proxy = await startFaultyProxy(t, [hang])
    const expected = { status: 0, message: 'no response within 50 ms', isOutcomeUnknown: true }
    await assert.rejects(proxy.connect({ timeoutMs: 50, retries: 0 }).create(FERN), expected)
  })

  test('aborts the request after 20 seconds by default', async (t) => {
    const signals: AbortSignal[] = []
    const hangForever = (init: RequestInit): Promise<Response> => {
      signals.push(init.signal!)
      return new Promise(() => undefined)
    }
    const { client, requestTimes, runTimers } = connectTo(t, hangForever, { retries: 1 })
    await Promise.all([assert.rejects(client.create(FERN), { message: 'no response within 20000 ms' }), runTimers()])
    assert.deepEqual(requestTimes, [0, 20_250])
    assert.deepEqual(
      signals.map(({ aborted }) => aborted),
      [true, true],
    )
  })

  test('can be infinite', async (t) => {
    const proxy = await startFaultyProxy(t)
    await proxy.connect({ timeoutMs: Infinity }).create(FERN)
  })

  test('also applies while the response body is being received', async (t) => {
    const proxy = await startFaultyProxy(t, [(_, response) => response.writeHead(200).write('[')])
    await assert.rejects(proxy.connect({ timeoutMs: 50, retries: 0 }).listPage(), {
      message: 'no response within 50 ms',
    })
  })
})

suite('an abort', () => {
  const reason = new Error('closed by the user')

  test('rejects the call without sending a request if the signal is already aborted', async (t) => {
    const proxy = await startFaultyProxy(t)
    const client = proxy.connect()
    const signal = AbortSignal.abort(reason)
    await assert.rejects(client.create(FERN, { signal }), reason)
    await assert.rejects(client.delete(1, { signal }), reason)
    await assert.rejects(client.listPage({ signal }), reason)
    await assert.rejects(client.list({ signal }).next(), reason)
    assert.deepEqual(proxy.requests, [])
  })

  test('during a request rejects the call and closes the connection', async (t) => {
    const controller = new AbortController()
    let isClosed = false
    const proxy = await startFaultyProxy(t, [
      (request) => {
        request.socket.on('close', () => (isClosed = true))
        controller.abort(reason)
      },
    ])
    await assert.rejects(proxy.connect().create(FERN, { signal: controller.signal }), reason)
    await waitUntil(() => isClosed)
    assert.equal(proxy.requests.length, 1)
  })

  test('rejects the call with the given reason, even if the reason is not an error', async (t) => {
    const controller = new AbortController()
    const proxy = await startFaultyProxy(t, [() => controller.abort('enough')])
    const reasonOf = proxy
      .connect()
      .create(FERN, { signal: controller.signal })
      .catch((error: unknown) => error)
    assert.equal(await reasonOf, 'enough')
  })

  test('rejects the call even if fetch ignores signals', async () => {
    const controller = new AbortController()
    const fetch = (): Promise<Response> => {
      setImmediate(() => controller.abort(reason))
      return new Promise(() => undefined)
    }
    const client = createPlantClient({ url: 'http://host', token: 'ada', fetch })
    await assert.rejects(client.create(FERN, { signal: controller.signal }), reason)
  })

  test('between two attempts rejects the call immediately', async (t) => {
    const controller = new AbortController()
    let requestCount = 0
    const { client } = connectTo(t, () => {
      requestCount++
      setImmediate(() => setImmediate(() => controller.abort(reason)))
      return Promise.resolve(unavailable('30'))
    })
    await assert.rejects(client.listPage({ signal: controller.signal }), reason)
    assert.equal(requestCount, 1)
  })

  test('between two plants of a page ends the list', async (t) => {
    const controller = new AbortController()
    const client = (await startFaultyProxy(t)).connect()
    for (const id of [1n, 2n]) await client.create({ id, name: 'Fern' })
    await assert.rejects(async () => {
      for await (const { id } of client.list({ signal: controller.signal })) {
        assert.equal(id, 1n)
        controller.abort(reason)
      }
    }, reason)
  })

  test('leaves no listeners or timers behind, just like a call that completes', async (t) => {
    const countTimers = (): number => process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length
    const before = countTimers()
    const controllers = [new AbortController(), new AbortController()] as const
    const fetch = (): Promise<Response> => Promise.resolve(unavailable('30'))
    const waiting = createPlantClient({ url: 'http://host', token: 'ada', fetch })
    const hanging = createPlantClient({ url: 'http://host', token: 'ada', fetch: () => new Promise(() => undefined) })
    const calls = [waiting.delete(1, controllers[0]), hanging.delete(1, controllers[1])]
    const settled = Promise.allSettled(calls)
    await waitUntil(() => countTimers() === before + 2)
    for (const controller of controllers) controller.abort(reason)
    await settled
    const { signal } = new AbortController()
    const server = await servePlants(t)
    await createPlantClient({ url: `http://127.0.0.1:${getPort(server)}`, token: 'ada' }).create(FERN, { signal })
    for (const each of [...controllers.map((controller) => controller.signal), signal]) {
      assert.equal(getEventListeners(each, 'abort').length, 0)
    }
    await new Promise((resolve) => server.close(resolve).closeAllConnections())
    await waitUntil(() => countTimers() <= before)
  })
})

suite('a token', () => {
  test('can come from a function, which is called for each attempt', async (t) => {
    const proxy = await startFaultyProxy(t, [respond(502)])
    let count = 0
    const client = proxy.connect({ token: async () => Promise.resolve(`token-${++count}`) })
    await client.create(FERN)
    assert.deepEqual(proxy.requests, ['POST /plants token-1', 'POST /plants token-2'])
  })

  test('from a function is renewed only once per call after a 401', async (t) => {
    const proxy = await startFaultyProxy(t, [respond(401), undefined, respond(401), respond(401)])
    let count = 0
    const client = proxy.connect({ token: () => `token-${++count}`, retries: 0 })
    await client.create(FERN)
    await assert.rejects(client.create(FERN), { status: 401, isOutcomeUnknown: false })
    assert.deepEqual(
      proxy.requests,
      [1, 2, 3, 4].map((n) => `POST /plants token-${n}`),
    )
  })

  test('that is a string is not sent again after a 401', async (t) => {
    const proxy = await startFaultyProxy(t, [respond(401)])
    await assert.rejects(proxy.connect().create(FERN), { status: 401, isOutcomeUnknown: false })
    assert.equal(proxy.requests.length, 1)
  })

  for (const [what, token] of [
    [
      'throws',
      () => {
        throw new RangeError('no token')
      },
    ],
    ['rejects', () => Promise.reject(new RangeError('no token'))],
  ] as const) {
    test(`function that ${what} rejects the call`, async (t) => {
      const proxy = await startFaultyProxy(t)
      await assert.rejects(proxy.connect({ token }).create(FERN), new RangeError('no token'))
      assert.deepEqual(proxy.requests, [])
    })
  }

  test('function that never settles times out with a known outcome', async (t) => {
    const proxy = await startFaultyProxy(t)
    let resolveToken: ((token: string) => void) | undefined
    const token = (): Promise<string> => new Promise((resolve) => (resolveToken = resolve))
    const create = proxy.connect({ token, timeoutMs: 10, retries: 0 }).create(FERN)
    await assert.rejects(create, { status: 0, message: 'no response within 10 ms', isOutcomeUnknown: false })
    resolveToken!('ada')
    await new Promise((resolve) => setImmediate(resolve))
    assert.deepEqual(proxy.requests, [])
  })
})

suite('fetch', () => {
  test('can be custom, and then sends every request', async (t) => {
    const proxy = await startFaultyProxy(t)
    const log: unknown[] = []
    const client = proxy.connect({
      async fetch(this: unknown, url, init) {
        const response = await fetch(url, init)
        log.push(this, url, init.method, init.body, response.status)
        return response
      },
    })
    await client.create(FERN)
    await client.delete(1)
    const create = [undefined, `${proxy.url}/plants`, 'POST', '{"id":1,"name":"Fern"}', 200]
    assert.deepEqual(log, [...create, undefined, `${proxy.url}/plants/1`, 'DELETE', null, 204])
  })

  test('is the current global one, even if a mock replaced it after the client was created', async (t) => {
    const client = createPlantClient({ url: 'http://host', token: 'ada' })
    t.mock.method(globalThis, 'fetch', async () => Promise.resolve(Response.json({ name: 'Fern' })))
    await client.create(FERN)
  })

  /** Deletes static members until the end of a test. */
  function deleteMembers(t: TestContext, object: object, names: readonly string[]): void {
    for (const name of names) {
      const descriptor = Object.getOwnPropertyDescriptor(object, name)!
      Reflect.deleteProperty(object, name)
      t.after(() => Object.defineProperty(object, name, descriptor))
    }
  }

  test('is required where there is no global one', async (t) => {
    const client = createPlantClient({ url: 'http://host', token: 'ada' })
    deleteMembers(t, globalThis, ['fetch'])
    const message = 'there is no global fetch: pass the option `fetch`'
    await assert.rejects(client.create(FERN), { name: 'TypeError', message })
  })

  test('is the only part of the Fetch API that the client needs', async (t) => {
    const proxy = await startFaultyProxy(t)
    deleteMembers(t, globalThis, ['Request', 'Response', 'Headers', 'FormData', 'Blob', 'structuredClone'])
    deleteMembers(t, AbortSignal, ['any', 'timeout'])
    deleteMembers(t, AbortSignal.prototype, ['throwIfAborted'])
    const { signal } = new AbortController()
    await proxy.connect().create(FERN, { signal })
    for await (const { id } of proxy.connect().list({ signal })) await proxy.connect().delete(id)
    assert.equal(proxy.requests.length, 4)
  })

  test("can be undici's", async (t) => {
    const undiciFetch: typeof import('undici-types').fetch = globalThis.fetch
    await (await startFaultyProxy(t)).connect({ fetch: undiciFetch }).create(FERN)
  })

  test('gets no signal if it rejects the signal, as Node does in the jsdom environment of Jest', async (t) => {
    const proxy = await startFaultyProxy(t)
    const rejectSignal: PlantClientOptions['fetch'] = async (url, init) => {
      if (init.signal !== null) throw new TypeError('RequestInit: Expected signal to be an instance of AbortSignal.')
      return fetch(url, init)
    }
    await proxy.connect({ fetch: rejectSignal, retries: 0 }).create(FERN)
  })

  test('can keep the byte order mark of a response', async () => {
    const text = async (): Promise<string> => Promise.resolve('\ufeff[]')
    const fetch = async () => Promise.resolve({ status: 200, headers: new Headers(), text })
    const client = createPlantClient({ url: 'http://host', token: 'ada', fetch })
    assert.deepEqual((await client.listPage()).plants, [])
  })
})

suite('a mistake in a custom fetch rejects the call at once', () => {
  const used = new Response('[]')
  for (const [what, mock] of [
    ['if it returns nothing', () => undefined],
    ['if it returns no Response', () => ({ status: 200, json: () => [] })],
    ['if it reads an undefined value', (_: string, init: RequestInit) => (init.headers as unknown as Headers).get('a')],
    ['if it encodes a bigint as JSON', () => new Response(JSON.stringify({ id: 1n }))],
    ['if it uses an undefined variable', () => (globalThis as never as { missing: () => never }).missing()],
    ['if it returns a Response that has been read', async () => ((await used.text().catch(String)) ? used : used)],
  ] as const) {
    test(what, async () => {
      let count = 0
      const fetch = async (url: string, init: RequestInit): Promise<Response> => {
        count++
        return Promise.resolve((await mock(url, init)) as Response)
      }
      const client = createPlantClient({ url: 'http://host', token: 'ada', fetch: fetch })
      await assert.rejects(client.listPage(), { name: 'TypeError' })
      assert.equal(count, 1)
    })
  }

  for (const message of [
    ...['fetch failed', 'Failed to fetch', 'Load failed', 'NetworkError when attempting to fetch resource.'],
    ...['terminated', 'network error', 'Network request failed', 'The network connection was lost.', 'cancelled'],
    ...['error sending request for url (http://host/plants)', 'The Internet connection appears to be offline.'],
  ]) {
    test(`unlike a lost connection (${message})`, async (t) => {
      const { client, requestTimes, runTimers } = connectTo(t, () => Promise.reject(new TypeError(message)))
      const expected = { name: 'PlantStoreError', message: 'no response', isOutcomeUnknown: true }
      await Promise.all([assert.rejects(client.create(FERN), expected), runTimers()])
      assert.equal(requestTimes.length, 5)
    })
  }
})
