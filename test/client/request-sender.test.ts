import assert from 'node:assert/strict'
import { suite, test, type TestContext } from 'node:test'
import { createPlantClient, type PlantClient, type PlantClientOptions } from '../../src/client/plant-client.ts'
import { respond, startFaultyProxy } from '../support/faulty-proxy.ts'

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
  /** Advances the time by 125 seconds in small steps, so that the client can act between two of them. */
  async function runTimers(): Promise<void> {
    for (let step = 0; step < 1000; step++) {
      await new Promise((resolve) => setImmediate(resolve))
      t.mock.timers.tick(125)
    }
  }
  return { client, requestTimes, runTimers }
}

suite('retries', () => {
  test('back off exponentially, with jitter', async (t) => {
    const respondNext = async (): Promise<Response> => Promise.resolve(unavailable())
    const { client, requestTimes, runTimers } = connectTo(t, respondNext, { random: 0.5 })
    await Promise.all([assert.rejects(client.listPage(), { error: 50300 }), runTimers()])
    const delays = requestTimes.map((time, index) => time - (requestTimes[index - 1] ?? 0))
    assert.deepEqual(delays, [0, 375, 750, 1500, 3000])
  })

  for (const [retryAfter, delayMs] of [
    ['3', 3000],
    ['30', 30_000],
    [new Date(NOW + 7000).toUTCString(), 7000],
    ...[new Date(NOW - 7000).toUTCString(), '0', '-5', 'Infinity', 'soon'].map((text) => [text, 250] as const),
  ] as const) {
    test(`wait ${delayMs} ms after "Retry-After: ${retryAfter}"`, async (t) => {
      const respondNext = async (): Promise<Response> => Promise.resolve(unavailable(retryAfter))
      const { client, requestTimes, runTimers } = connectTo(t, respondNext, { retries: 1 })
      await Promise.all([assert.rejects(client.listPage()), runTimers()])
      assert.deepEqual(requestTimes, [0, delayMs])
    })
  }

  for (const retryAfter of ['31', new Date(NOW + 3_600_000).toUTCString()]) {
    test(`aren't sent after "Retry-After: ${retryAfter}"`, async (t) => {
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

  test("aren't sent after other errors", async (t) => {
    const statuses = [400, 401, 403, 404, 405, 409, 413, 415, 417, 431, 500, 501]
    const faults = statuses.map((status) => respond(status))
    const proxy = await startFaultyProxy(t, faults)
    for (const status of statuses) await assert.rejects(proxy.connect().listPage(), { status, isOutcomeUnknown: false })
    assert.equal(proxy.requests.length, statuses.length)
  })
})

suite('a timeout', () => {
  test('aborts each attempt after 20 seconds by default', async (t) => {
    const signals: AbortSignal[] = []
    const hangForever = (init: RequestInit): Promise<Response> => {
      signals.push(init.signal!)
      return new Promise(() => undefined)
    }
    const { client, requestTimes, runTimers } = connectTo(t, hangForever, { retries: 1 })
    const expected = { status: 0, message: 'no response within 20000 ms', isOutcomeUnknown: true }
    await Promise.all([assert.rejects(client.create(FERN), expected), runTimers()])
    assert.deepEqual(requestTimes, [0, 20_250])
    assert.ok(signals.every(({ aborted }) => aborted))
  })

  test('while a page is arriving makes the next attempt request half as many plants', async (t) => {
    const stalling = { status: 200, headers: new Headers(), text: () => new Promise<string>(() => undefined) }
    const responses = [undefined, stalling, stalling, Response.json([])]
    const limits: unknown[] = []
    const { client, runTimers } = connectTo(t, () => assert.fail(), {
      async fetch(url) {
        limits.push(new URL(url).searchParams.get('limit'))
        return responses.shift() ?? new Promise(() => undefined)
      },
    })
    await Promise.all([client.list().next(), runTimers()])
    assert.deepEqual(limits, ['500', '500', '250', '125'])
  })
})

suite('an abort', () => {
  const reason = new Error('closed by the user')

  test('rejects the call without sending a request if the signal is already aborted', async (t) => {
    const proxy = await startFaultyProxy(t)
    const client = proxy.connect()
    const signal = AbortSignal.abort(reason)
    await assert.rejects(client.create(FERN, { signal }), reason)
    await assert.rejects(client.list({ signal }).next(), reason)
    assert.deepEqual(proxy.requests, [])
  })

  test('rejects the call even if fetch ignores its signal', async () => {
    const controller = new AbortController()
    const fetch = (): Promise<Response> => new Promise(() => controller.abort(reason))
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

  test('leaves no timers behind, just like a call that completes', async () => {
    const countTimers = (): number => process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length
    const before = countTimers()
    const fetch = async (): Promise<Response> => Promise.resolve(Response.json({ name: 'Fern' }))
    await createPlantClient({ url: 'http://host', token: 'ada', fetch }).create(FERN)
    assert.equal(countTimers(), before)
  })
})

suite('a token', () => {
  test('can come from a function, which is called for each attempt, and once per call after a 401', async (t) => {
    const proxy = await startFaultyProxy(t, [respond(502), respond(401), undefined, respond(401), respond(401)])
    let count = 0
    const client = proxy.connect({ token: async () => Promise.resolve(`token-${++count}`), retries: 1 })
    await client.create(FERN)
    await assert.rejects(client.create(FERN), { status: 401, isOutcomeUnknown: false })
    const expected = [1, 2, 3, 4, 5].map((n) => `POST /plants token-${n}`)
    assert.deepEqual(proxy.requests, expected)
  })

  test('function that rejects makes the call reject', async (t) => {
    const proxy = await startFaultyProxy(t)
    const token = (): Promise<string> => Promise.reject(new RangeError('no token'))
    await assert.rejects(proxy.connect({ token }).create(FERN), new RangeError('no token'))
    assert.deepEqual(proxy.requests, [])
  })

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

  /** Deletes static members until the end of a test. */
  function deleteMembers(t: TestContext, object: object, names: readonly string[]): void {
    for (const name of names) {
      const descriptor = Object.getOwnPropertyDescriptor(object, name)!
      Reflect.deleteProperty(object, name)
      t.after(() => Object.defineProperty(object, name, descriptor))
    }
  }

  test('is the current global one, even if a mock has replaced it', async (t) => {
    const client = createPlantClient({ url: 'http://host', token: 'ada' })
    t.mock.method(globalThis, 'fetch', async () => Promise.resolve(Response.json({ name: 'Fern' })))
    await client.create(FERN)
    deleteMembers(t, globalThis, ['fetch'])
    await assert.rejects(client.create(FERN), { name: 'TypeError', message: /fetch/ })
  })

  test('is the only part of the Fetch API that the client needs', async (t) => {
    const proxy = await startFaultyProxy(t)
    deleteMembers(t, globalThis, ['Request', 'Response', 'Headers', 'FormData', 'structuredClone'])
    deleteMembers(t, AbortSignal, ['any', 'timeout'])
    deleteMembers(t, AbortSignal.prototype, ['throwIfAborted'])
    const { signal } = new AbortController()
    await proxy.connect().create(FERN, { signal })
    for await (const { id } of proxy.connect().list({ signal })) await proxy.connect().delete(id)
    assert.equal(proxy.requests.length, 4)
  })

  test("can be undici's, without a cast", async (t) => {
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

suite('a TypeError of fetch', () => {
  const used = new Response('[]')
  for (const [what, mock] of [
    ['returns nothing', () => undefined],
    ['returns no Response', () => ({ status: 200, json: () => [] })],
    ['reads an undefined value', (_: string, init: RequestInit) => (init.headers as Headers).get('a')],
    ['encodes a bigint as JSON', () => new Response(JSON.stringify({ id: 1n }))],
    ['uses an undefined variable', () => (globalThis as never as { missing: () => never }).missing()],
    ['returns a Response that has been read', async () => ((await used.text().catch(String)) ? used : used)],
  ] as const) {
    test(`rejects the call at once if a mock ${what}`, async () => {
      const fetch = async (url: string, init: RequestInit): Promise<Response> => (await mock(url, init)) as Response
      const client = createPlantClient({ url: 'http://host', token: 'ada', fetch, retries: Infinity })
      await assert.rejects(client.listPage(), { name: 'TypeError' })
    })
  }

  test('is a lost connection if it has the message of one, in any browser', async () => {
    for (const message of [
      ...['fetch failed', 'Failed to fetch', 'Load failed', 'NetworkError when attempting to fetch resource.'],
      ...['terminated', 'network error', 'Network request failed', 'The network connection was lost.', 'cancelled'],
      ...['error sending request for url (http://host/plants)', 'The Internet connection appears to be offline.'],
    ]) {
      const fetch = (): Promise<never> => Promise.reject(new TypeError(message))
      const client = createPlantClient({ url: 'http://host', token: 'ada', fetch, retries: 0 })
      await assert.rejects(client.create(FERN), { name: 'PlantStoreError', message: 'no response' })
    }
  })
})
