import assert from 'node:assert/strict'
import { EventEmitter, once } from 'node:events'
import { suite, test } from 'node:test'
import { captureLog } from '../support/captured-log.ts'
import { ask, assertAnswer, jsonAnswer, serveProgramPaths } from '../support/program-paths.ts'

const UNAVAILABLE = jsonAnswer(
  503,
  { error: 50300, message: 'The plants are out of reach at the moment; try again.' },
  { 'retry-after': '1' },
)

test('/livez answers without a token', async (t) => {
  await assertAnswer(ask(await serveProgramPaths(t), '/livez'), jsonAnswer(200, { status: 'live' }))
})

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
      'never answers',
      () => new Promise(() => undefined),
      /^StoreUnavailableError: the store did not answer a ping within 50 ms\n/,
    ],
  ]
  for (const [name, ping, reason] of rows) {
    test(`is not ready if the store ${name}, which is logged`, async (t) => {
      const events = captureLog(t)
      await assertAnswer(ask(await serveProgramPaths(t, ping), '/readyz'), UNAVAILABLE)
      assert.deepEqual(
        events.map(({ event }) => event),
        ['unready'],
      )
      assert.match(String(events[0]!['reason']), reason)
    })
  }

  test('asks the store once for all who ask at the same time, and again for those who ask later', async (t) => {
    let pings = 0
    let answer: () => void = () => undefined
    const server = await serveProgramPaths(t, () => {
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
