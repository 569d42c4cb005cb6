import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { captureLog, valuesOf } from '../../support/program/captured-log.ts'
import { ownClock } from '../../support/event-loop.ts'
import { until } from '../../support/until.ts'
import { ask, assertAnswer, jsonAnswer, serveProgramPaths } from '../../support/program/program-paths.ts'

const UNAVAILABLE = jsonAnswer(
  503,
  { error: 50300, message: 'The plants are out of reach at the moment; try again.' },
  { 'retry-after': '1' },
)

suite('/readyz', () => {
  const ready = jsonAnswer(200, { status: 'ready' })

  test('is ready if the store has no ping', async (t) => {
    await assertAnswer(ask(await serveProgramPaths(t), '/readyz'), ready)
  })

  test('is ready if the store answers a ping', async (t) => {
    await assertAnswer(ask(await serveProgramPaths(t, () => Promise.resolve()), '/readyz'), ready)
  })

  test('is not ready while the service drains', async (t) => {
    const expected = jsonAnswer(503, { error: 50300, message: 'The service is shutting down.' }, { 'retry-after': '1' })
    await assertAnswer(ask(await serveProgramPaths(t, undefined, true), '/readyz'), expected)
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
      'takes almost a second to answer',
      () => new Promise(() => undefined),
      /^StoreUnavailableError: the store did not answer a ping within 900 ms\n/,
    ],
  ]
  for (const [name, ping, reason] of rows) {
    test(`is not ready if the store ${name}, which is logged`, async (t) => {
      const events = captureLog(t)
      await assertAnswer(ask(await serveProgramPaths(t, ping), '/readyz'), UNAVAILABLE)
      assert.deepEqual(valuesOf(events, 'event'), ['unready'])
      assert.match(String(events[0]!['reason']), reason)
    })
  }

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
