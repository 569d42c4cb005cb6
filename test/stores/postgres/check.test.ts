import assert from 'node:assert/strict'
import { suite, test, type TestContext } from 'node:test'
import { ConnectionCheck } from '../../../src/stores/postgres/check.ts'
import type { Connection } from '../../../src/stores/postgres/postgres-store.ts'

const UTF8 = ['off', 'UTF8', 'UTF8']
const PATIENCE_MS = 100

/** A connection that answers so, and what it was asked. */
function answering(answer: (text: string) => unknown[]): { connection: Connection; asked: string[] } {
  const asked: string[] = []
  const connection: Connection = {
    query: ({ text }) =>
      new Promise((resolve) => {
        asked.push(text)
        resolve({ rows: [answer(text)], rowCount: 1 })
      }),
    release: () => undefined,
    on: () => undefined,
  }
  return { connection, asked }
}

/** What comes of a check: whether the server has taken over, or the error. */
async function outcome(check: ConnectionCheck, row: unknown[]): Promise<boolean | string> {
  return check.run(answering(() => row).connection).catch(String)
}

/** A clock that stands until it is set. */
function mockClock(t: TestContext): { ms: number } {
  const clock = { ms: 0 }
  t.mock.method(performance, 'now', () => clock.ms)
  return clock
}

suite('refuses a connection', () => {
  for (const [settings, message] of [
    [['on', 'UTF8', 'UTF8'], 'ReadOnlyServerError: The server is read-only: a standby, or set so.'],
    [['off', 'LATIN1', 'UTF8'], 'UnsuitableDatabaseError: The server_encoding is LATIN1; plants need UTF8.'],
    [['off', 'UTF8', 'LATIN1'], 'UnsuitableDatabaseError: The client_encoding is LATIN1; plants need UTF8.'],
  ] as const) {
    test(settings.join(), async () =>
      assert.equal(await outcome(new ConnectionCheck(PATIENCE_MS), [...settings]), message),
    )
  }
})

suite('compares timelines', () => {
  const replaced = (timeline: string, newest: string): string =>
    `ReplacedServerError: The server was replaced: its timeline is ${timeline}, the newest ${newest}.`
  type Step = [atMs: number, system: string, timeline: string, outcome: boolean | string]
  const rows: [string, ...Step[]][] = [
    ['the first server has taken over from none', [0, '7', '00000009', false]],
    ['nor has the same one', [0, '7', '00000009', false], [0, '7', '00000009', false]],
    ['a newer one has', [0, '7', '00000009', false], [0, '7', '0000000A', true], [0, '7', '0000000A', false]],
    ['an older one was replaced', [0, '7', '0000000A', false], [99, '7', '00000009', replaced('00000009', '0000000A')]],
    ['another system is another database', [0, '7', '0000000A', false], [0, '8', '00000001', false]],
    ['also a newer one', [0, '7', '00000001', false], [0, '8', '0000000A', false]],
    [
      'an older one is meant if no other is met for long',
      [0, '7', '0000000A', false],
      [10, '7', '00000009', replaced('00000009', '0000000A')],
      [109, '7', '00000009', replaced('00000009', '0000000A')],
      [110, '7', '00000009', false],
    ],
    [
      'not if another one is met meanwhile',
      [0, '7', '0000000A', false],
      [10, '7', '00000009', replaced('00000009', '0000000A')],
      [20, '7', '0000000A', false],
      [110, '7', '00000009', replaced('00000009', '0000000A')],
    ],
    [
      'what is meant is the newest then',
      [0, '7', '0000000A', false],
      [10, '7', '00000009', replaced('00000009', '0000000A')],
      [110, '7', '00000009', false],
      [120, '7', '00000008', replaced('00000008', '00000009')],
      [120, '7', '0000000A', true],
    ],
  ]
  for (const [name, ...steps] of rows) {
    test(name, async (t) => {
      const clock = mockClock(t)
      const check = new ConnectionCheck(PATIENCE_MS)
      for (const [atMs, system, timeline, expected] of steps) {
        clock.ms = atMs
        assert.equal(await outcome(check, [...UTF8, system, timeline]), expected)
      }
    })
  }
})

suite('asks', () => {
  const refusal = (code: string): Error => Object.assign(new Error(`SQLSTATE ${code}`), { code })

  test('a database that has no timelines for what it knows, and from then on for that only', async () => {
    const check = new ConnectionCheck(PATIENCE_MS)
    const { connection, asked } = answering((text) => {
      if (text.includes('pg_control_system')) throw refusal('42883')
      return UTF8
    })
    assert.deepEqual([await check.run(connection), await check.run(connection)], [false, false])
    assert.deepEqual(
      asked.map((text) => [text.includes('transaction_read_only'), text.includes('pg_control_system')]),
      [
        [true, true],
        [true, false],
        [true, false],
      ],
    )
  })

  test('once if trying again may help', async () => {
    const check = new ConnectionCheck(PATIENCE_MS)
    const { connection, asked } = answering(() => {
      throw refusal('57P01')
    })
    for (const times of [1, 2]) {
      await assert.rejects(check.run(connection), { message: 'SQLSTATE 57P01' })
      assert.equal(asked.length, times)
    }
    assert.ok(asked.every((text) => text.includes('pg_control_system')))
  })

  test('no third time', async () => {
    const check = new ConnectionCheck(PATIENCE_MS)
    const { connection, asked } = answering(() => {
      throw refusal('42501')
    })
    await assert.rejects(check.run(connection), { message: 'SQLSTATE 42501' })
    assert.equal(asked.length, 2)
    await assert.rejects(check.run(connection), { message: 'SQLSTATE 42501' })
    assert.equal(asked.length, 3)
  })
})
