// What a store asks of a pool, and what it makes of the answers. Without a database, so it takes no time.
import assert from 'node:assert/strict'
import { EventEmitter } from 'node:events'
import { suite, test } from 'node:test'
import type { NewPlant } from '../../../src/plants/plant.ts'
import {
  postgresStore,
  schema,
  type ConnectionPool,
  type PostgresStore,
  type PostgresStoreOptions,
  type Query,
  type QueryResult,
} from '../../../src/stores/postgres/postgres-store.ts'
import { failure, serverError } from '../../support/database/failures.ts'
import { poolOf } from '../../support/database/pool-of.ts'

type Answer = QueryResult | Error

const CHANGED: QueryResult = { rows: [], rowCount: 1 }
const UNCHANGED: QueryResult = { rows: [], rowCount: 0 }

interface Trial {
  readonly store: PostgresStore
  /** The name of each statement, or its text if it has none, and its values. */
  readonly asked: unknown[][]
}

/** A store whose pool gives these answers, one after the other. */
function start(answers: readonly Answer[], options?: PostgresStoreOptions): Trial {
  const asked: unknown[][] = []
  const query = ({ name, text, values }: Query): Promise<QueryResult> => {
    const answer = answers[asked.length]!
    asked.push([name ?? text, ...values])
    return answer instanceof Error ? Promise.reject(answer) : Promise.resolve({ ...answer })
  }
  return { store: postgresStore(poolOf(query), options), asked }
}

const plant = (id: number, tag?: string): NewPlant => ({ id: BigInt(id), name: `plant ${id}`, ...(tag && { tag }) })

/** What comes of some calls: the value, or the message of the error. */
async function outcomesOf(calls: readonly Promise<unknown>[]): Promise<unknown[]> {
  const outcomes = await Promise.allSettled(calls)
  return outcomes.map((each): unknown => (each.status === 'fulfilled' ? each.value : (each.reason as Error).message))
}

test('creates and deletes a plant alone, and says whether that changed something', async () => {
  const { store, asked } = start([CHANGED, UNCHANGED, CHANGED, UNCHANGED])
  const outcomes = [
    await store.create('ann', plant(1, 'green')),
    await store.create('ann', plant(2)),
    await store.delete('ann', 1n),
    await store.delete('ann', 2n),
  ]
  assert.deepEqual(outcomes, [true, false, true, false])
  assert.deepEqual(asked, [
    ['plant-store create one', 'ann', '1', 'plant 1', 'green'],
    ['plant-store create one', 'ann', '2', 'plant 2', null],
    ['plant-store delete one', 'ann', '1'],
    ['plant-store delete one', 'ann', '2'],
  ])
})

suite('carries out together what came meanwhile', () => {
  test('column by column, and reads no rows if all of it changed something', async () => {
    const { store, asked } = start([CHANGED, { rows: [], rowCount: 2 }])
    const calls = [plant(1), plant(2), plant(3, 'green')].map((each) => store.create('ann', each))
    assert.deepEqual(await outcomesOf(calls), [true, true, true])
    assert.deepEqual(asked, [
      ['plant-store create one', 'ann', '1', 'plant 1', null],
      ['plant-store create many', ['ann', 'ann'], ['2', '3'], ['plant 2', 'plant 3'], [null, 'green']],
    ])
  })

  test('and the first on a plant is the one that changed it', async () => {
    const { store, asked } = start([UNCHANGED, { rows: [['bob', '1']], rowCount: 1 }])
    const calls = ['ann', 'bob', 'bob'].map((owner) => store.delete(owner, 1n))
    assert.deepEqual(await outcomesOf(calls), [false, true, false])
    assert.deepEqual(asked.at(-1), ['plant-store delete many', ['bob', 'bob'], ['1', '1']])
  })

  test('and in halves if the server refuses a value, until that one is alone', async () => {
    const refusal = serverError('22021')
    const { store, asked } = start([CHANGED, refusal, { rows: [], rowCount: 1 }, refusal], { maxBatch: 2 })
    const calls = [1, 2, 3].map((id) => store.create('ann', plant(id)))
    assert.deepEqual(await outcomesOf(calls), [true, true, 'SQLSTATE 22021'])
    const [one, many] = ['plant-store create one', 'plant-store create many']
    const names = asked.map(([name]) => name)
    assert.deepEqual(names, [one, many, one, one])
  })

  test('and fails together for another reason', async () => {
    const { store, asked } = start([CHANGED, serverError('42P01')], { maxBatch: 2 })
    const calls = [1, 2, 3].map((id) => store.create('ann', plant(id)))
    assert.deepEqual(await outcomesOf(calls), [true, 'SQLSTATE 42P01', 'SQLSTATE 42P01'])
    assert.equal(asked.length, 2)
  })
})

for (const [name, call] of [
  ['create', (store: PostgresStore, id: number) => store.create('ann', plant(id))],
  ['delete', (store: PostgresStore, id: number) => store.delete('ann', BigInt(id))],
] as const) {
  test(`sends no ${name} that has waited for longer than a statement may take`, async (t) => {
    let now = 1000
    t.mock.method(performance, 'now', () => now)
    const { store, asked } = start([CHANGED, CHANGED, CHANGED], { timeoutMs: 50, maxBatch: 1 })
    const calls = [1, 2].map((id) => call(store, id))
    now += 50
    assert.deepEqual(await outcomesOf(calls), [true, true])
    const late = [3, 4].map((id) => call(store, id))
    now += 51
    assert.deepEqual(await outcomesOf(late), [true, 'No statement was free in time.'])
    assert.equal(asked.length, 3)
  })
}

test('gives names up without a word if nobody listens', async () => {
  const { store, asked } = start([serverError('26000'), CHANGED])
  assert.equal(await store.delete('ann', 1n), true)
  assert.match(String(asked[1]![0]), /^DELETE/)
})

test('sends no names if statements are not to be prepared', async () => {
  const { store, asked } = start([CHANGED], { preparedStatements: false })
  await store.delete('ann', 1n)
  assert.match(String(asked[0]![0]), /^DELETE/)
})

test('shares the next statement of a page with all who ask for the same meanwhile, and for nothing else', async () => {
  const page: QueryResult = { rows: [['1', 'fern', null]], rowCount: 1 }
  const { store, asked } = start(Array.from({ length: 7 }, () => page))
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

suite('makes its table', () => {
  const find = `SELECT to_regclass('plant_store_plants')`
  const absent: QueryResult = { rows: [[null]], rowCount: 1 }
  const rows: [name: string, answers: Answer[], texts: string[], failure?: RegExp][] = [
    ['not if it is there', [{ rows: [['plant_store_plants']], rowCount: 1 }], [find]],
    ['if it is not there', [absent, UNCHANGED], [find, schema]],
    ['although another process makes it', [absent, serverError('42P07'), UNCHANGED], [find, schema, schema]],
    ['no third time', [absent, serverError('42P07'), serverError('42501')], [find, schema, schema], /42501/],
  ]
  for (const [name, answers, texts, failure] of rows) {
    test(name, async () => {
      const { store, asked } = start(answers)
      if (failure === undefined) await store.migrate()
      else await assert.rejects(store.migrate(), failure)
      assert.deepEqual(asked.flat(), texts)
    })
  }
})

test('listens once to the errors of idle connections, however many stores share a pool', () => {
  const pool = Object.assign(new EventEmitter(), { connect: () => Promise.reject(new Error('not asked')) })
  postgresStore(pool)
  postgresStore(pool)
  assert.equal(pool.listenerCount('error'), 1)
  pool.emit('error', new Error('Connection terminated unexpectedly'))
})

test('knows not what became of a create or a delete whose connection broke, be it of one plant or of many', async () => {
  const store = postgresStore(poolOf(() => Promise.reject(new Error('Connection terminated unexpectedly'))))
  const calls = [1, 2, 3].flatMap((id) => [
    store.create('ann', plant(id)),
    store.delete('ann', BigInt(id)),
    store.list('ann', { limit: 1, maxBytes: 100, after: BigInt(id) }),
  ])
  const unknowns = (await Promise.all(calls.map(failure))).map(({ isOutcomeUnknown }) => isOutcomeUnknown)
  assert.deepEqual(unknowns, [true, true, false, true, true, false, true, true, false])
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
