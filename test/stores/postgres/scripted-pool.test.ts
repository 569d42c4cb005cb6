import '../../support/fakeable-timers.ts'
// How the store uses a pool and handles its responses, where `test/simulation/postgres/` doesn't cover it.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { suite, test } from 'node:test'
import { setImmediate as nextTick } from 'node:timers/promises'
import { Pool, type Client } from 'pg'
import { connectWithRetry } from '../../../src/stores/postgres/connect-with-retry.ts'
import { OutageDetector } from '../../../src/stores/postgres/outage-detector.ts'
import {
  postgresStore,
  type ConnectionPool,
  type PostgresStore,
  type PostgresStoreOptions,
  type Query,
  type QueryResult,
} from '../../../src/stores/postgres/postgres-store.ts'
import { RAW_TEXT_TYPES } from '../../../src/stores/postgres/pool.ts'
import { QueryRunner } from '../../../src/stores/postgres/query-runner.ts'
import type { TableQuery } from '../../../src/stores/postgres/statements.ts'
import { captureUnavailable, captureError, createServerError } from '../../support/database/errors.ts'
import { createInspectionResult, createMockPool } from '../../support/database/mock-pool.ts'
import { measureHeapUsed } from '../../support/memory-usage.ts'
import { waitUntil } from '../../support/wait-until.ts'
import { startMessageServer } from '../../support/wire/message-server.ts'

/** The suffix of a statement name: a hash of its text. */
const DIGEST = / [0-9a-f]{16}$/

const ONE_ROW_CHANGED: QueryResult = { rows: [], rowCount: 1 }

/** Creates a store whose pool returns the given responses in order, and then succeeds. */
function createScriptedStore(responses: readonly (QueryResult | Error)[], options: PostgresStoreOptions = {}) {
  /** The name (or the text, for unnamed statements) and the values of each statement. */
  const sentQueries: unknown[][] = []
  const warnings: string[] = []
  function query({ name, text, values }: Query): Promise<QueryResult> {
    const response = responses[sentQueries.length] ?? ONE_ROW_CHANGED
    sentQueries.push([name?.replace(DIGEST, '') ?? text, ...values])
    return response instanceof Error ? Promise.reject(response) : Promise.resolve(Object.freeze({ ...response }))
  }
  const onWarning = (message: string): unknown => warnings.push(message)
  return { store: postgresStore(createMockPool(query), { onWarning, ...options }), asked: sentQueries, warnings }
}

const never = () => new Promise<never>(() => undefined)
const deletePlant = (store: PostgresStore) => store.delete('ann', 1n)

function throwFault(): never {
  throw new Error('a fault of the listener')
}

test('the store stops using prepared statements even if onWarning is missing, throws or rejects', async () => {
  for (const onWarning of [undefined, throwFault, (): unknown => Promise.resolve().then(throwFault)]) {
    const { store } = createScriptedStore([createServerError('26000')], { onWarning })
    assert.equal(await deletePlant(store), true)
    await nextTick()
  }
})

test('the store warns when it retries an unknown prepared statement as an unnamed statement', async () => {
  const refusal = createServerError('26000')
  const { store, asked, warnings } = createScriptedStore([refusal], { preparedStatements: false })
  assert.equal(await captureError(deletePlant(store)), refusal)
  assert.deepEqual([asked.length, warnings], [1, []])
  const named = createScriptedStore([refusal, refusal])
  assert.equal(await captureError(deletePlant(named.store)), refusal)
  const warning = `The connection pooler does not keep prepared statements (${refusal.message}), so the store stops using them.`
  assert.deepEqual([named.asked.length, named.warnings], [2, [warning]])
})

// The driver keeps the query in memory.
test('the store clears the values and rows of a completed query', async () => {
  const queries: Query[] = []
  const result: QueryResult = { rows: [['1', 'fern', null]], rowCount: 1 }
  const store = postgresStore(createMockPool((query) => (queries.push(query), Promise.resolve(result))))
  assert.equal((await store.list('ann', { limit: 1, maxBytes: 1 })).plants.length, 1)
  const [{ values, rowMode, types }] = queries as [Query]
  assert.deepEqual([values, result.rows, rowMode, types.getTypeParser()('7')], [[], [], 'array', '7'])
})

test('the store retries a statement after serialization failures with exponential backoff', async (t) => {
  t.mock.method(Math, 'random', () => 20)
  const { store } = createScriptedStore([createServerError('40001'), createServerError('40001')])
  const startedAt = performance.now()
  await deletePlant(store)
  // Timers may fire a millisecond early.
  assert.ok(performance.now() - startedAt >= 40 + 80 - 2)
})

test('ping() falls back to statements that change no rows if a constraint rejects its write probe', async () => {
  const { store, asked } = createScriptedStore([createServerError('53100'), createServerError('23514')])
  await captureError(store.create('ann', { id: 1n, name: 'fern' }))
  await store.ping()
  const words = (text: unknown): unknown[] => [...String(text).matchAll(/(?:^|;) *([A-Z]+)/gm)].map(([, word]) => word)
  const texts = asked.slice(1).map(([text, ...values]) => [...words(text), ...values])
  assert.deepEqual(texts, [
    ['INSERT', 'DELETE'],
    ['DELETE', 'INSERT'],
  ])
})

test('ping() reuses the result of a write probe for 900 ms', async (t) => {
  let now = 1000
  t.mock.method(performance, 'now', () => now)
  const full = createServerError('53100')
  const { store, asked } = createScriptedStore([full, full])
  await captureError(store.create('ann', { id: 1n, name: 'fern' }))
  const error = await captureError(store.ping())
  now += 899
  assert.equal(await captureError(store.ping()), error)
  now++
  await store.ping()
  assert.equal(asked.length, 3)
})

test('ping() fails if a write has been waiting for more than 900 ms', async (t) => {
  let now = 1000
  t.mock.method(performance, 'now', () => now)
  let answer!: (result: QueryResult) => void
  const answers = [new Promise<QueryResult>((resolve) => (answer = resolve))]
  const store = postgresStore(createMockPool(() => answers.shift() ?? Promise.resolve(ONE_ROW_CHANGED)))
  const write = deletePlant(store)
  // Waiting for a connection doesn't count: connecting to a distant server may take seconds.
  now += 2000
  await nextTick()
  now += 899
  await store.ping()
  now++
  assert.equal(
    (await captureUnavailable(store.ping())).message,
    'A write has been waiting for a response for more than 900 ms.',
  )
  answer(ONE_ROW_CHANGED)
  await write
})

test('ping() succeeds if a write succeeds while the ping is waiting', async () => {
  // Only pings have no values.
  const store = postgresStore(
    createMockPool(({ values }) => (values.length === 0 ? never() : Promise.resolve(ONE_ROW_CHANGED))),
  )
  const ping = store.ping()
  await deletePlant(store)
  await ping
})

test('concurrent identical list calls share one query', async () => {
  const page: QueryResult = { rows: [['1', 'fern', null]], rowCount: 1 }
  const { store, asked } = createScriptedStore(Array.from({ length: 7 }, () => page))
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
  for (const { plants, hasMore } of await Promise.all(lists)) {
    assert.deepEqual([plants.map(({ id }) => id), hasMore], [[1n], false])
  }
  assert.deepEqual(asked, [
    ['plant-store list', 'ann', first, 11],
    ['plant-store list', 'bob', first, 11],
    ['plant-store list', 'ann', first, 2],
    ['plant-store list', 'ann', first, 11],
    ['plant-store list', 'ann', '1', 11],
    ['plant-store list', 'ann', first, 11],
  ])
})

test('delete() returns true only for deleted plants, even if a foreign table returns a plant twice', async () => {
  const twice: QueryResult = { rows: Array.from({ length: 2 }, () => ['ann', '1']), rowCount: 2 }
  const { store } = createScriptedStore([twice, twice])
  assert.deepEqual(await Promise.all([1n, 1n, 2n].map((id) => store.delete('ann', id))), [true, true, false])
})

test('the store does not retry migrate() if the connection breaks', async () => {
  const { store, asked } = createScriptedStore([
    createServerError('42P01'),
    new Error('Connection terminated unexpectedly'),
  ])
  await captureUnavailable(store.migrate())
  assert.equal(asked.length, 2)
})

test('all connections use the schema found by the first completed connection check', async () => {
  const found = ['public', 'other', 'public'].map((schema) => createInspectionResult({ schema, currentSchema: schema }))
  const looks: unknown[][] = []
  const texts: string[] = []
  let answer!: (result: QueryResult) => void
  const late = new Promise<QueryResult>((resolve) => (answer = resolve))
  const pool: ConnectionPool = {
    async connect() {
      const query = ({ text, values }: Query): Promise<QueryResult> => {
        if (!text.includes('server_encoding')) return (texts.push(text), Promise.resolve(ONE_ROW_CHANGED))
        looks.push(values)
        const result = found[looks.length - 1]!
        return looks.length === 2 ? late.then(() => result) : Promise.resolve(result)
      }
      return { ...(await createMockPool(never).connect()), query }
    },
  }
  const store = postgresStore(pool)
  const deletes = [deletePlant(store), store.list('ann', { limit: 1, maxBytes: 1 })]
  await deletes[0]
  answer(ONE_ROW_CHANGED)
  await Promise.all(deletes)
  assert.deepEqual(looks, [[null], [null], ['public']])
  for (const text of texts) assert.match(text, / FROM "public"\.plant_store_plants /)
})

test('the store survives a session that is opened and terminated in a single packet', async (t) => {
  const { port } = await startMessageServer(t, (socket) => {
    // Authentication succeeds, the server is ready, and an administrator shuts it down.
    const [welcome, ready] = ['R\0\0\0\x08\0\0\0\0', 'Z\0\0\0\x05I']
    const fields = 'SFATAL\0C57P01\0Mterminating connection due to administrator command\0\0'
    socket.end(`${welcome}${ready}E\0\0\0${String.fromCharCode(4 + fields.length)}${fields}`)
  })
  const pool = new Pool({ host: '127.0.0.1', port, user: 'ann', database: 'plants' })
  t.after(() => pool.end())
  const connected = once(pool, 'connect') as Promise<[Client]>
  const stores = [1, 2].map(() => postgresStore(pool, { timeoutMs: 400 }))
  const failures = await Promise.all(stores.map((store) => captureUnavailable(deletePlant(store))))
  assert.deepEqual([...failures.map(({ isOutcomeUnknown }) => isOutcomeUnknown), pool.totalCount], [false, false, 0])
  const [client] = await connected
  assert.deepEqual([pool.listenerCount('connect'), client.listenerCount('notice')], [1, 1])
})

test('the store rethrows programming errors unchanged', async () => {
  const bug = new TypeError('pool.options is undefined')
  function connect(): never {
    throw bug
  }
  assert.equal(await captureError(deletePlant(postgresStore({ connect }))), bug)
  assert.equal(await captureError(connectWithRetry({ connect }, 1000)), bug)
})

suite('connections during a failover', () => {
  test('the store fails only if both connection requests to a slow pool fail', async (t) => {
    t.mock.timers.enable({ apis: ['setInterval', 'setTimeout'] })
    const failures: ((error: Error) => void)[] = []
    const connecting = connectWithRetry({ connect: () => new Promise((_, fail) => failures.push(fail)) }, 10_000)
    t.mock.timers.tick(500)
    failures[0]!(new Error('first'))
    await nextTick()
    failures[1]!(new Error('second'))
    await assert.rejects(connecting, { message: 'second' })
  })

  test('the store requests connections until one passes its check', async () => {
    let asked = 0
    let answer = () => Promise.resolve(ONE_ROW_CHANGED)
    const pool = createMockPool(() => answer())
    const counting = { connect: () => (asked++, asked === 2 ? never() : pool.connect()) }
    const store = postgresStore(counting, { timeoutMs: 1000 })
    answer = () => Promise.reject(createServerError('57P01'))
    await captureUnavailable(deletePlant(store))
    answer = () => Promise.resolve(ONE_ROW_CHANGED)
    // The second connection never arrives, and the third passes its check.
    assert.equal(await deletePlant(store), true)
    assert.equal(asked, 3)
    counting.connect = () => (asked++, never())
    await captureUnavailable(deletePlant(store))
    assert.equal(asked, 4)
  })
})

test('the probes of an unresponsive server do not keep the process alive', async () => {
  const silence = new OutageDetector(never)
  const before = process.getActiveResourcesInfo()
  silence.begin(performance.now())
  assert.deepEqual(process.getActiveResourcesInfo(), before)
  const next = silence.nextProbe()
  silence.stop()
  await next
  silence.begin(performance.now())
  assert.equal(silence.isActive, false)
})

test('the outage detector ignores an unanswered message that is older than the last response', async (t) => {
  t.mock.method(performance, 'now', () => 1000)
  const silence = new OutageDetector(() => Promise.resolve(true))
  silence.begin(1000)
  await silence.nextProbe()
  silence.begin(1000)
  assert.equal(silence.isActive, false)
  silence.begin(1001)
  assert.equal(silence.isActive, true)
  await silence.nextProbe()
  const query: TableQuery = { text: () => '', values: [], rowMode: 'array', types: RAW_TEXT_TYPES }
  const message = 'The call timed out before the statement was sent.'
  await assert.rejects(new QueryRunner(createMockPool(never), 100, () => undefined).send(query, 1000), { message })
})

test('statements that time out while the server is unresponsive are freed from memory', async (t) => {
  const { port } = await startMessageServer(t, () => undefined)
  const connection = {
    ...(await createMockPool(() => Promise.resolve(ONE_ROW_CHANGED)).connect()),
    host: '127.0.0.1',
    port,
  }
  const pool = { connect: () => Promise.resolve(connection) }
  const runner = new QueryRunner(pool, 100, () => undefined)
  t.after(() => runner.close())
  async function giveUp() {
    const query: TableQuery = { text: () => '', values: [], rowMode: 'array', types: RAW_TEXT_TYPES }
    await runner.send(query, performance.now() + 100).catch(() => undefined)
    return new WeakRef(query)
  }
  await giveUp()
  // The server is unresponsive, but this pool fails for another reason.
  let refusals = 0
  pool.connect = () => (refusals++, Promise.reject(new Error('Cannot use a pool after calling end on the pool')))
  await giveUp()
  const before = refusals
  await giveUp()
  assert.ok(refusals > before)
  pool.connect = () => Promise.reject(new Error('timeout exceeded when trying to connect'))
  await giveUp()
  const statement = await giveUp()
  await waitUntil(() => (measureHeapUsed(), statement.deref() === undefined))
})

suite('postgresStore throws a TypeError for an invalid argument', () => {
  const aPool = createMockPool(() => Promise.reject(new Error('asked')))
  const whole = 'must be a whole number from 1 to'
  const rows = [
    [
      'postgres://ann:secret@host',
      {},
      'pool must be a connection pool with a connect method, not a value of type string',
    ],
    [undefined, {}, 'pool must be a connection pool with a connect method, not a value of type undefined'],
    [null, {}, 'pool must be a connection pool with a connect method, not a value of type object'],
    [aPool, { maxBatch: 0 }, `options.maxBatch ${whole} 9007199254740991, not 0`],
    [aPool, { timeoutMs: 2 ** 31 }, `options.timeoutMs ${whole} 2147483647, not 2147483648`],
  ] as const
  for (const [pool, options, message] of rows) {
    test(message, () => assert.throws(() => postgresStore(pool as ConnectionPool, options), new TypeError(message)))
  }
})
