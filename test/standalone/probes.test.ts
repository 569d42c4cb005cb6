import assert from 'node:assert/strict'
import { EventEmitter, once } from 'node:events'
import type { Server } from 'node:http'
import { suite, test, type TestContext } from 'node:test'
import { createPlantStore, memoryStore, type Store } from '../../src/index.ts'
import { openapi } from '../../src/openapi/openapi.ts'
import { createPages } from '../../src/standalone/probes.ts'
import { captureLog } from '../support/captured-log.ts'
import { send, serve, type Answer } from '../support/service.ts'

const JSON_TYPE = { 'content-type': 'application/json' }

function servePages(t: TestContext, ping?: Store['ping'], isDraining = false): Promise<Server> {
  const store = { ...memoryStore(), ...(ping && { ping }) }
  const plants = createPlantStore({ tokens: { YWRh: 'ada' }, store })
  return serve(t, createPages({ store, storeTimeoutMs: 50, isDraining: () => isDraining }, plants))
}

function ask(server: Server, path: string, method = 'GET'): Promise<Answer> {
  return send(server, { method, path, fields: [] })
}

function jsonAnswer(status: number, value: unknown, headers: Record<string, string> = {}): Omit<Answer, 'connection'> {
  const body = JSON.stringify(value)
  return {
    status,
    headers: { ...JSON_TYPE, 'content-length': String(Buffer.byteLength(body)), ...headers },
    body,
  }
}

async function assertAnswer(answer: Promise<Answer>, expected: Omit<Answer, 'connection'>): Promise<void> {
  const { status, headers, body } = await answer
  assert.deepEqual({ status, headers, body }, expected)
}

const UNAVAILABLE = jsonAnswer(
  503,
  { error: 50300, message: 'The plants are out of reach at the moment; try again.' },
  { 'retry-after': '1' },
)

test('/livez answers without a token', async (t) => {
  await assertAnswer(ask(await servePages(t), '/livez'), jsonAnswer(200, { status: 'live' }))
})

test('/openapi.json is the interface description', async (t) => {
  await assertAnswer(ask(await servePages(t), '/openapi.json'), jsonAnswer(200, openapi))
})

test('a query does not matter', async (t) => {
  assert.equal((await ask(await servePages(t), '/livez?verbose')).status, 200)
})

test('HEAD is answered like GET, without a body', async (t) => {
  const headers = { ...JSON_TYPE, 'content-length': '17' }
  await assertAnswer(ask(await servePages(t), '/livez', 'HEAD'), { status: 200, headers, body: '' })
})

test('OPTIONS is answered with the methods', async (t) => {
  const headers = { allow: 'GET, HEAD, OPTIONS' }
  await assertAnswer(ask(await servePages(t), '/readyz', 'OPTIONS'), { status: 204, headers, body: '' })
})

test('another method is not allowed', async (t) => {
  const message = 'This resource does not have that method; Allow lists those that it has.'
  const expected = jsonAnswer(405, { error: 40500, message }, { allow: 'GET, HEAD, OPTIONS' })
  await assertAnswer(ask(await servePages(t), '/livez', 'POST'), expected)
})

for (const path of ['http://host/livez', '/%6Civez', '/livez?a=/b']) {
  test(`${path} is /livez`, async (t) => {
    await assertAnswer(ask(await servePages(t), path), jsonAnswer(200, { status: 'live' }))
  })
}

for (const path of ['/livez/', '//livez', '/Livez', '/%2Flivez', '/livez%', '/']) {
  test(`${path} is nothing`, async (t) => {
    const message = 'There is nothing at this path. The plants are at /plants.'
    await assertAnswer(ask(await servePages(t), path), jsonAnswer(404, { error: 40400, message }))
  })
}

suite('the header fields must be sound', () => {
  const rows: readonly [name: string, fields: readonly string[], error: number, message: string][] = [
    ['two of Host', ['Host', 'a', 'Host', 'a'], 40000, 'The request has more than one Host field.'],
    [
      'two of Content-Type',
      ['Content-Type', 'a/b', 'Content-Type', 'a/b'],
      40000,
      'The request has more than one Content-Type field.',
    ],
    [
      'another transfer coding',
      ['Transfer-Encoding', 'gzip, chunked'],
      50100,
      'The only transfer coding that is understood here is chunked.',
    ],
    // With Host and Connection, which the client adds. Of more, newer Node versions answer a 431 of their own.
    [
      '1,000 fields',
      Array.from({ length: 2 * 998 }, (_, i) => (i % 2 === 0 ? 'X' : 'y')),
      43100,
      'The request has too many header fields, or too large ones.',
    ],
  ]
  for (const [name, fields, error, message] of rows) {
    test(name, async (t) => {
      const answer = send(await servePages(t), { method: 'GET', path: '/livez', fields })
      await assertAnswer(answer, jsonAnswer(Math.trunc(error / 100), { error, message }))
    })
  }
})

test('what is no page is left to the plants', async (t) => {
  const message = 'There is nothing at this path. The plants are at /plants.'
  await assertAnswer(ask(await servePages(t), '/livez/'), jsonAnswer(404, { error: 40400, message }))
})

suite('/readyz', () => {
  const ready = jsonAnswer(200, { status: 'ready' })

  test('is ready where the store has no ping', async (t) => {
    await assertAnswer(ask(await servePages(t), '/readyz'), ready)
  })

  test('is ready where the store answers a ping', async (t) => {
    await assertAnswer(ask(await servePages(t, () => Promise.resolve()), '/readyz'), ready)
  })

  test('is not ready while the service drains', async (t) => {
    const expected = jsonAnswer(503, { error: 50300, message: 'The service is shutting down.' }, { 'retry-after': '1' })
    await assertAnswer(ask(await servePages(t, undefined, true), '/readyz'), expected)
  })

  const rows: readonly [name: string, ping: () => Promise<void>, reason: RegExp][] = [
    ['rejects', () => Promise.reject(new Error('the database is away')), /^Error: the database is away\n/],
    [
      'throws',
      () => {
        throw new Error('the database is away')
      },
      /^Error: the database is away\n/,
    ],
    [
      'never answers',
      () => new Promise(() => undefined),
      /^StoreUnavailableError: the store did not answer a ping within 50 ms\n/,
    ],
  ]
  for (const [name, ping, reason] of rows) {
    test(`is not ready where the store ${name}, which is logged`, async (t) => {
      const events = captureLog(t)
      await assertAnswer(ask(await servePages(t, ping), '/readyz'), UNAVAILABLE)
      assert.deepEqual(
        events.map(({ event }) => event),
        ['unready'],
      )
      assert.match(String(events[0]!['reason']), reason)
    })
  }

  test('asks the store once for all who ask at a time, and again for those who ask later', async (t) => {
    let pings = 0
    let answer: () => void = () => undefined
    const server = await servePages(t, () => {
      pings++
      return new Promise((resolve) => (answer = resolve))
    })
    let arrived = 0
    const waiting = new EventEmitter()
    server.on('request', () => waiting.emit(String(++arrived)))
    for (const [round, lastArrival] of ['3', '6'].entries()) {
      const allArrived = once(waiting, lastArrival)
      const answers = [1, 2, 3].map(() => ask(server, '/readyz'))
      await allArrived
      answer()
      for (const { status } of await Promise.all(answers)) assert.equal(status, 200)
      assert.equal(pings, round + 1)
    }
  })
})
