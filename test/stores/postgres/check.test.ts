import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { checkConnection } from '../../../src/stores/postgres/check.ts'
import type { Query } from '../../../src/stores/postgres/postgres-store.ts'

/** Checks a connection that answers so. Returns what it was asked. */
async function check(settings: readonly string[]): Promise<{ asked: Query[]; hasForeignTables: boolean }> {
  const asked: Query[] = []
  const hasForeignTables = await checkConnection({
    query(query) {
      asked.push(query)
      return Promise.resolve({ rows: [settings], rowCount: 1 })
    },
    release: () => undefined,
    on: () => undefined,
  })
  return { asked, hasForeignTables }
}

test('takes a connection to a server that takes writes, and any text, in one round trip that is not prepared', async () => {
  const { asked } = await check(['off', 'UTF8', 'UTF8', 'f'])
  const seen = asked.map(({ name, values }) => [name, values])
  assert.deepEqual(seen, [[undefined, []]])
})

test('tells whether the server has tables on others', async () => {
  for (const [answer, expected] of [
    ['t', true],
    ['f', false],
  ] as const) {
    assert.equal((await check(['off', 'UTF8', 'UTF8', answer])).hasForeignTables, expected)
  }
})

suite('refuses a connection', () => {
  for (const [settings, message] of [
    [['on', 'UTF8', 'UTF8'], 'Error: The server is read-only: a standby, or set so.'],
    [['off', 'LATIN1', 'UTF8'], 'UnsuitableDatabaseError: The server_encoding is LATIN1; plants need UTF8.'],
    [['off', 'UTF8', 'LATIN1'], 'UnsuitableDatabaseError: The client_encoding is LATIN1; plants need UTF8.'],
  ] as const) {
    test(settings.join(), () => assert.rejects(check(settings), (error) => String(error) === message))
  }
})
