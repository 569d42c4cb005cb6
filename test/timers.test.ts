import assert from 'node:assert/strict'
import { connect } from 'node:net'
import { performance } from 'node:perf_hooks'
import process from 'node:process'
import { suite, test, type TestContext } from 'node:test'
import { memoryStore } from '../src/index.ts'
import * as bound from '../src/timers.ts'
import { openSqliteStore, skipWithoutSqlite } from './support/database/sqlite-file.ts'
import { get, getPort, post, sendRequest, servePlants } from './support/wire/service.ts'

/** Imports a new copy of the module, as in a test that mocks the timers before it imports the package. */
function importFresh(name: string): Promise<typeof bound> {
  return import(`../src/timers.ts?${name}.ts`) as Promise<typeof bound>
}

function mockAllTimers(t: TestContext): void {
  t.mock.timers.enable()
  t.mock.method(globalThis, 'queueMicrotask', () => undefined)
  t.mock.method(performance, 'now', () => 1000)
}

suite('the package while timers are mocked', () => {
  test('creates plants in SQLite', { skip: skipWithoutSqlite }, async (t) => {
    const { store } = openSqliteStore(t)
    mockAllTimers(t)
    assert.equal(await store.create('ada', { id: 1n, name: 'Monstera' }), true)
  })

  test('sends lists that are longer than one page', async (t) => {
    const store = memoryStore()
    for (let id = 0n; id < 3000n; id++) void store.create('ada', { id, name: 'Monstera' })
    const server = await servePlants(t, { store })
    mockAllTimers(t)
    const { status, body } = await sendRequest(server, get('ada'))
    assert.equal(status, 200)
    assert.equal((JSON.parse(body) as unknown[]).length, 3000)
  })

  test('responds to pipelined requests', async (t) => {
    const server = await servePlants(t)
    mockAllTimers(t)
    const socket = connect(getPort(server), '127.0.0.1').setEncoding('latin1')
    const request = 'GET /plants HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ada\r\n'
    socket.write(`${request}\r\n${request}\r\n${request}Connection: close\r\n\r\n`)
    const received = (await socket.toArray()).join('')
    assert.equal(received.match(/HTTP\/1\.1 200 OK/g)?.length, 3)
  })

  test('rejects a body over the size limit', async (t) => {
    const server = await servePlants(t, { maxBodyBytes: 10 })
    mockAllTimers(t)
    assert.equal((await sendRequest(server, post('ada', '{"id":1,"name":"Monstera"}'))).status, 413)
  })

  test('applies the store timeout', async (t) => {
    const store = { ...memoryStore(), create: () => new Promise<boolean>(() => undefined) }
    const server = await servePlants(t, { store, storeTimeoutMs: 20, onError: () => undefined })
    mockAllTimers(t)
    assert.equal((await sendRequest(server, post('ada', '{"id":1,"name":"Monstera"}'))).status, 503)
  })

  test('reads the real clock', async (t) => {
    mockAllTimers(t)
    const before = bound.performance.now()
    await bound.sleep(2)
    assert.ok(bound.performance.now() > before)
  })
})

suite('the package imported while timers are mocked', () => {
  test('runs immediates', async (t) => {
    t.mock.timers.enable()
    const { setImmediate, yieldToEventLoop } = await importFresh('immediates')
    await new Promise<void>((resolve) => setImmediate(resolve))
    await yieldToEventLoop()
  })

  test('uses the real timers after the mock timers are reset', async (t) => {
    t.mock.timers.enable()
    const { clearInterval, clearTimeout, setInterval, setTimeout, sleep } = await importFresh('restored')
    t.mock.timers.reset()
    const never = setTimeout(() => assert.fail(), 1)
    clearTimeout(never)
    await new Promise<void>((resolve) => {
      const interval = setInterval(() => {
        clearInterval(interval)
        resolve()
      }, 1)
    })
    await sleep(1)
  })

  test('uses the real clock after the mock clock is removed', async (t) => {
    const { mock } = t.mock.method(performance, 'now', () => 1000)
    const clock = (await importFresh('clock')).performance
    assert.equal(clock.now(), 1000)
    mock.restore()
    assert.notEqual(clock.now(), 1000)
  })

  test('runs nextTick callbacks after nextTick is restored', async (t) => {
    const { mock } = t.mock.method(process, 'nextTick', () => undefined)
    const { nextTick } = await importFresh('next-tick')
    mock.restore()
    await new Promise<void>((resolve) => nextTick(resolve))
  })
})
