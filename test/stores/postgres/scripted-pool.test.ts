// What a store asks of a pool, and what it makes of the answers. Without a database, so it takes no time.
import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { setImmediate as nextRound } from 'node:timers/promises'
import {
  postgresStore,
  type ConnectionPool,
  type PostgresStore,
  type Query,
  type QueryResult,
} from '../../../src/stores/postgres/postgres-store.ts'
import { failure, serverError } from '../../support/database/failures.ts'
import { LISTENERS } from '../../support/database/listeners.ts'
import { poolOf } from '../../support/database/pool-of.ts'

const CHANGED: QueryResult = { rows: [], rowCount: 1 }

interface Trial {
  readonly store: PostgresStore
  /** The name of each statement, or its text if it has none, and its values. */
  readonly asked: unknown[][]
}

/** A store whose pool gives these answers, one after the other. */
function start(...answers: readonly (QueryResult | Error)[]): Trial {
  const asked: unknown[][] = []
  const query = ({ name, text, values }: Query): Promise<QueryResult> => {
    const answer = answers[asked.length]!
    asked.push([name ?? text, ...values])
    return answer instanceof Error ? Promise.reject(answer) : Promise.resolve({ ...answer })
  }
  return { store: postgresStore(poolOf(query)), asked }
}

for (const [name, onWarning] of LISTENERS) {
  test(`gives names up if who is warned ${name}`, async () => {
    const answers = [Promise.reject(serverError('26000')), Promise.resolve(CHANGED)]
    const pool = poolOf(() => answers.shift()!)
    assert.equal(await postgresStore(pool, { onWarning }).delete('ann', 1n), true)
    await nextRound()
  })
}

test('shares the next statement of a page with all who ask for the same meanwhile, and for nothing else', async () => {
  const page: QueryResult = { rows: [['1', 'fern', null]], rowCount: 1 }
  const { store, asked } = start(...Array.from({ length: 7 }, () => page))
  const request = { limit: 10, maxBytes: 100 }
  const first = '-9223372036854775808'
  const lists = [
    store.list('ann', request),
    store.list('ann', request),
    store.list('ann', request),
    store.list('bob', request),
    store.list('ann', { ...request, limit: 1 }),
    store.list('ann', { ...request, maxBytes: 10 }),
    store.list('ann', { ...request, after: 0n }),
  ]
  for (const listed of await Promise.all(lists)) assert.deepEqual([listed.length, listed[0]!.id], [1, 1n])
  assert.deepEqual(asked, [
    ['plant-store list', 'ann', first, 10],
    ['plant-store list', 'bob', first, 10],
    ['plant-store list', 'ann', first, 1],
    ['plant-store list', 'ann', first, 10],
    ['plant-store list', 'ann', '1', 10],
    ['plant-store list', 'ann', first, 10],
  ])
})

test('deletes a plant that is there twice, as a foreign table may have it, and no other', async () => {
  const twice: QueryResult = {
    rows: [
      ['ann', '1'],
      ['ann', '1'],
    ],
    rowCount: 2,
  }
  const { store } = start(twice, twice)
  assert.deepEqual(await Promise.all([1n, 1n, 2n].map((id) => store.delete('ann', id))), [true, true, false])
})

test('leaves it to its caller to migrate again if the connection breaks', async () => {
  const { store, asked } = start({ rows: [[null]], rowCount: 1 }, new Error('Connection terminated unexpectedly'))
  await failure(store.migrate())
  assert.equal(asked.length, 2)
})

suite('refuses at once, and says why', () => {
  const aPool = poolOf(() => Promise.reject(new Error('asked')))
  const whole = 'must be a whole number from 1 to'
  const rows: [pool: unknown, options: unknown, message: string][] = [
    ['postgres://ann:secret@host', {}, 'pool must be a pool of connections, not of type string'],
    [undefined, {}, 'pool must be a pool of connections, not of type undefined'],
    [null, {}, 'pool must be a pool of connections, not of type object'],
    [aPool, 7, 'options must be an object, not 7'],
    [aPool, { maxGroup: 1 }, 'unknown option "maxGroup"'],
    [aPool, { preparedStatements: 'false' }, "options.preparedStatements must be true or false, not 'false'"],
    [aPool, { onWarning: 'log' }, "options.onWarning must be a function, not 'log'"],
    [aPool, { maxBatch: 0 }, `options.maxBatch ${whole} 9007199254740991, not 0`],
    [aPool, { maxInFlight: 0 }, `options.maxInFlight ${whole} 9007199254740991, not 0`],
    [aPool, { timeoutMs: NaN }, `options.timeoutMs ${whole} 2147483647, not NaN`],
    [aPool, { timeoutMs: 2 ** 31 }, `options.timeoutMs ${whole} 2147483647, not 2147483648`],
  ]
  for (const [pool, options, message] of rows) {
    test(message, () =>
      assert.throws(() => postgresStore(pool as ConnectionPool, options as object), new TypeError(message)),
    )
  }
})
