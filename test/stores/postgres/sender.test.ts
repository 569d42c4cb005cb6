import assert from 'node:assert/strict'
import { suite, test, type TestContext } from 'node:test'
import { StoreUnavailableError } from '../../../src/plants/store.ts'
import type { Query, QueryResult } from '../../../src/stores/postgres/postgres-store.ts'
import { Sender, type SenderOptions } from '../../../src/stores/postgres/sender.ts'
import type { Statement } from '../../../src/stores/postgres/statements.ts'
import { failure, failureOf, serverError } from '../../support/database/failures.ts'

const READ: Statement = { name: 'read', text: 'SELECT $1' }
const WRITE: Statement = { name: 'write', text: 'INSERT', isWrite: true }
const CREATE: Statement = { text: 'INSERT', isWrite: true, isCreate: true }
const DONE: QueryResult = { rows: [['1']], rowCount: 1 }

interface Trial {
  readonly sender: Sender
  readonly queries: Query[]
  readonly warnings: string[]
  /** What comes of each query, in order; then all of them are answered. */
  readonly script: (Error | QueryResult | Promise<QueryResult>)[]
}

/** A sender whose queries have outcomes by a script. */
function start(options: Partial<SenderOptions> = {}, ...script: Trial['script']): Trial {
  const queries: Query[] = []
  const warnings: string[] = []
  function sendQuery(query: Query): Promise<QueryResult> {
    // The sender changes a query that it sends again, and empties its values in the end.
    queries.push({ ...query, values: [...query.values] })
    const outcome = script.shift() ?? DONE
    if (outcome instanceof Promise) return outcome
    return outcome instanceof Error ? Promise.reject(outcome) : Promise.resolve(Object.freeze({ ...outcome }))
  }
  const sender = new Sender(sendQuery, {
    preparedStatements: true,
    timeoutMs: 4000,
    onWarning: (message) => warnings.push(message),
    ...options,
  })
  return { sender, queries, warnings, script }
}

suite('sends', () => {
  test('a statement with its name and its values, and takes rows as arrays of texts', async () => {
    const { sender, queries } = start()
    assert.deepEqual(await sender.send(READ, ['ann']), DONE)
    const [{ types, ...query }] = queries as [Query]
    assert.deepEqual(query, { name: 'read', text: 'SELECT $1', values: ['ann'], rowMode: 'array' })
    assert.equal(types.getTypeParser()('7'), '7')
  })

  test('a statement of which the driver keeps neither values nor rows', async () => {
    const [kept, result]: [Query[], QueryResult] = [[], { ...DONE }]
    const sendQuery = (query: Query): Promise<QueryResult> => (kept.push(query), Promise.resolve(result))
    const sender = new Sender(sendQuery, { preparedStatements: true, timeoutMs: 4000, onWarning: () => undefined })
    assert.deepEqual(await sender.send(READ, ['ann']), DONE)
    assert.deepEqual([kept[0]!.values, result.rows], [[], []])
  })

  test('statements again without their names if a pooler has forgotten them, says so once, and names none any more', async () => {
    const { sender, queries, warnings } = start({}, serverError('26000'), serverError('42P05'))
    await Promise.all([sender.send(READ, []), sender.send(WRITE, [])])
    await sender.send(WRITE, [])
    const names = queries.map(({ name }) => name)
    assert.deepEqual(names, ['read', 'write', undefined, undefined, undefined])
    assert.deepEqual(warnings, [
      'A pooler does not keep prepared statements (SQLSTATE 26000), so they are not used any more.',
    ])
  })

  test('a statement again without its name if the table was altered, and names it the next time', async () => {
    const stale = Object.assign(serverError('0A000'), { routine: 'RevalidateCachedQuery' })
    const { sender, queries, warnings } = start({}, stale)
    assert.deepEqual(await sender.send(READ, []), DONE)
    await sender.send(READ, [])
    assert.deepEqual([queries.map(({ name }) => name), warnings], [['read', undefined, 'read'], []])
  })

  test('no statement again that had no name', async () => {
    const refusal = serverError('26000')
    const { sender, queries, warnings } = start({ preparedStatements: false }, refusal)
    assert.equal(await failureOf(sender.send(READ, [])), refusal)
    assert.deepEqual([queries.length, warnings], [1, []])
  })

  test('a statement five times that others are preferred to, and not again', async () => {
    const conflicts = Array.from({ length: 9 }, () => serverError('40P01'))
    const { sender, queries } = start({}, ...conflicts)
    await failure(sender.send(WRITE, []))
    assert.equal(queries.length, 5)
    assert.deepEqual(await sender.send(WRITE, []), DONE)
    assert.equal(queries.length, 5 + 5)
  })

  test('it after a wait of chance, which may be twice as long each time', async (t) => {
    t.mock.method(Math, 'random', () => 20)
    const { sender } = start({}, serverError('40001'), serverError('40001'))
    const startedAt = performance.now()
    await sender.send(WRITE, [])
    // Timers may be due a millisecond early.
    assert.ok(performance.now() - startedAt >= 40 + 80 - 2)
  })
})

suite('says what came of it', () => {
  for (const [name, error] of [
    ['to wait does not help', serverError('42P01')],
    ['it is known why it was not sent', new StoreUnavailableError('No connection.')],
  ] as const) {
    test(`${name}: the error as it is`, async () => {
      const { sender } = start({}, error)
      assert.equal(await failureOf(sender.send(WRITE, [])), error)
    })
  }

  for (const [name, statement, error, isOutcomeUnknown] of [
    ['a write that was cancelled', WRITE, serverError('57014'), false],
    ['a write whose session ended', WRITE, serverError('57P01'), true],
    ['a read whose session ended', READ, serverError('57P01'), false],
  ] as const) {
    test(`${name}: ${isOutcomeUnknown ? 'unknown' : 'not carried out'}`, async () => {
      const { message, cause, ...rest } = await failure(start({}, error).sender.send(statement, []))
      assert.deepEqual([message, cause, rest], ['The database cannot be used now.', error, { isOutcomeUnknown }])
    })
  }
})

suite('asks whether a plant can be created', () => {
  const nothing = ['DELETE', 'INSERT']
  const aWrite = ['INSERT; DELETE']
  /** The statements of the queries, each by its first word, since the last time. */
  const take = (queries: Query[]): string[] =>
    queries.splice(0).map(({ text }) => [...text.matchAll(/(?:^|; *\n *)([A-Z]+)/g)].map(([, word]) => word).join('; '))

  interface Troubled extends Trial {
    readonly clock: { now: number }
  }

  /** A sender whose last write has failed, and the time that it knows. */
  async function startInTrouble(t: TestContext): Promise<Troubled> {
    const clock = { now: 1000 }
    t.mock.method(performance, 'now', () => clock.now)
    const trial = start({}, serverError('53100'))
    await failureOf(trial.sender.send(CREATE, []))
    take(trial.queries)
    return { ...trial, clock }
  }

  test('by statements that write nothing', async () => {
    const { sender, queries } = start()
    await sender.ping()
    assert.deepEqual(take(queries), nothing)
  })

  test('by a write in each second until one succeeds', async (t) => {
    const { sender, queries, script, clock } = await startInTrouble(t)
    script.push(serverError('53100'))
    const error = await failure(sender.ping())
    clock.now += 899
    assert.equal(await failureOf(sender.ping()), error)
    assert.deepEqual(take(queries), aWrite)
    clock.now++
    await sender.ping()
    assert.deepEqual(take(queries), aWrite)
  })

  test('by one write if many ask', async (t) => {
    const { sender, queries } = await startInTrouble(t)
    await Promise.all([sender.ping(), sender.ping()])
    assert.deepEqual(take(queries), aWrite)
  })

  test('by statements that write nothing, if the table refuses what is tried', async (t) => {
    const { sender, queries, script } = await startInTrouble(t)
    script.push(serverError('23514'))
    await sender.ping()
    assert.deepEqual(take(queries), [...aWrite, ...nothing])
  })

  for (const [name, statement, result, asked] of [
    ['a plant was created', CREATE, DONE, nothing],
    ['a plant was there already', CREATE, { rows: [], rowCount: 0 }, aWrite],
    ['a plant was deleted', WRITE, DONE, aWrite],
    ['plants were listed', READ, DONE, aWrite],
  ] as const) {
    test(`by ${asked === aWrite ? 'a write' : 'what writes nothing'} if since then ${name}`, async (t) => {
      const { sender, queries, script } = await startInTrouble(t)
      script.push(result)
      await sender.send(statement, [])
      take(queries)
      await sender.ping()
      assert.deepEqual(take(queries), asked)
    })
  }

  test('by what writes nothing if a list has failed', async () => {
    const { sender, queries } = start({}, serverError('57014'))
    await failureOf(sender.send(READ, []))
    take(queries)
    await sender.ping()
    assert.deepEqual(take(queries), nothing)
  })
})
