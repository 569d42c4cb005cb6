import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { captureLog, valuesOf } from '../../support/program/captured-log.ts'
import { ownClock } from '../../support/event-loop.ts'
import { until } from '../../support/until.ts'
import { ask, assertAnswer, jsonAnswer, serveProgramPaths } from '../../support/program/program-paths.ts'
import type { ExpectedAnswer } from '../../support/program/program-paths.ts'
import type { Store } from '../../../src/index.ts'

const READY = jsonAnswer(200, { status: 'ready' })

function unready(message: string): ExpectedAnswer {
  return jsonAnswer(503, { error: 50300, message }, { 'retry-after': '1' })
}

suite('/readyz', () => {
  const away = new Error('the database is away')
  const throwing = (): never => {
    throw away
  }
  const never = (): Promise<void> => new Promise(() => undefined)
  const rows: readonly [name: string, ping: Store['ping'], reason?: RegExp][] = [
    ['has no ping', undefined],
    ['answers a ping', () => Promise.resolve()],
    ['rejects', () => Promise.reject(away), /^Error: the database is away\n/],
    ['throws', throwing, /^Error: the database is away\n/],
    ['does not answer', never, /^StoreUnavailableError: the store did not answer a ping within 900 ms\n/],
  ]
  for (const [name, ping, reason] of rows) {
    test(`is ${reason ? 'not ready, which is logged,' : 'ready'} if the store ${name}`, async (t) => {
      const events = captureLog(t)
      const expected = reason ? unready('The plants are out of reach at the moment; try again.') : READY
      await assertAnswer(ask(await serveProgramPaths(t, ping), '/readyz'), expected)
      assert.deepEqual(valuesOf(events, 'event'), reason ? ['unready'] : [])
      if (reason) assert.match(String(events[0]!['reason']), reason)
    })
  }

  test('is not ready while the service drains', async (t) => {
    const server = await serveProgramPaths(t, undefined, true)
    await assertAnswer(ask(server, '/readyz'), unready('The service is shutting down.'))
  })

  test('asks the store once a second, however many clients ask', async (t) => {
    let pings = 0
    const server = await serveProgramPaths(t, () => {
      pings++
    })
    const startedAt = performance.now()
    let asked = 0
    for (; pings < 3; asked++) assert.equal((await ask(server, '/readyz')).status, 200)
    assert.ok(performance.now() - startedAt >= 1990)
    assert.ok(asked > 10)
  })

  test('says within 2 s that the store does not answer any more, and that it does again', async (t) => {
    const events = captureLog(t)
    let isHanging = false
    const server = await serveProgramPaths(t, () => (isHanging ? new Promise(() => undefined) : undefined))
    for (const [status, next] of [
      [200, 503],
      [503, 200],
      [200, 503],
    ] as const) {
      assert.equal((await ask(server, '/readyz')).status, status)
      const elapsed = ownClock()
      isHanging = !isHanging
      await until(async () => (await ask(server, '/readyz')).status !== status)
      assert.ok(elapsed() < 2100, `${elapsed()} ms`)
      assert.equal((await ask(server, '/readyz')).status, next)
    }
    assert.deepEqual(valuesOf(events, 'event'), ['unready', 'ready', 'unready'])
  })
})
