import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { StoreUnavailableError } from '../../../src/plants/store.ts'
import { UnconfirmedError } from '../../../src/stores/postgres/failure.ts'
import type { Query, QueryResult } from '../../../src/stores/postgres/postgres-store.ts'
import { Sender, type SenderOptions } from '../../../src/stores/postgres/sender.ts'
import type { Statement } from '../../../src/stores/postgres/statements.ts'

const READ: Statement = { name: 'read', text: 'SELECT $1' }
const WRITE: Statement = { name: 'write', text: 'INSERT', isWrite: true }
const PING: Statement = { name: 'ping', text: 'SELECT 1' }
const DONE: QueryResult = { rows: [['1']], rowCount: 1 }

function withCode(code: string): Error {
  return Object.assign(new Error(`SQLSTATE ${code}`), { code })
}

interface Trial {
  readonly sender: Sender
  readonly queries: Query[]
  readonly warnings: string[]
  /** What comes of each query, in order; then all of them are answered. */
  readonly script: (Error | Promise<never>)[]
}

/** Has a sender use a pool that lends nothing. */
function start(options: Partial<SenderOptions> = {}, ...script: Trial['script']): Trial {
  const queries: Query[] = []
  const warnings: string[] = []
  const pool = {
    async query(query: Query) {
      // The sender changes a query that it sends again, and empties its values in the end.
      queries.push({ ...query, values: [...query.values] })
      const failure = await script.shift()
      if (failure !== undefined) throw failure
      return Object.freeze({ ...DONE })
    },
  }
  const sender = new Sender(pool, {
    preparedStatements: true,
    timeoutMs: 5000,
    onWarning: (message) => warnings.push(message),
    ...options,
  })
  return { sender, queries, warnings, script }
}

async function failureOf(promise: Promise<unknown>): Promise<unknown> {
  const [outcome] = await Promise.allSettled([promise])
  return outcome.status === 'rejected' ? outcome.reason : undefined
}

suite('sends', () => {
  test('a statement with its name, its values and its time, and takes rows as arrays of texts', async () => {
    const { sender, queries } = start()
    assert.deepEqual(await sender.send(READ, ['ann']), DONE)
    const [{ types, ...query }] = queries as [Query]
    assert.deepEqual(query, {
      name: 'read',
      text: 'SELECT $1',
      values: ['ann'],
      rowMode: 'array',
      query_timeout: 5000,
    })
    assert.equal(types.getTypeParser()('7'), '7')
  })

  test('a statement of which the driver keeps neither values nor rows', async () => {
    const kept: [Query, QueryResult][] = []
    const pool = {
      query(query: Query) {
        const result = { ...DONE }
        kept.push([query, result])
        return Promise.resolve(result)
      },
    }
    const sender = new Sender(pool, { preparedStatements: true, timeoutMs: 5000, onWarning: () => undefined })
    assert.deepEqual(await sender.send(READ, ['ann']), DONE)
    assert.deepEqual(
      kept.map(([{ values }, { rows }]) => [values, rows]),
      [[[], []]],
    )
  })

  test('no name if statements are not prepared, or have none', async () => {
    const { sender, queries } = start({ preparedStatements: false })
    await sender.send(READ, [])
    const unnamed = start()
    await unnamed.sender.send({ text: 'SELECT 1' }, [])
    assert.deepEqual(
      [...queries, ...unnamed.queries].map((query) => 'name' in query),
      [false, false],
    )
  })

  test('a statement again without its name if a pooler has forgotten it, and no name any more', async () => {
    const { sender, queries, warnings } = start({}, withCode('26000'))
    await sender.send(READ, [])
    await sender.send(WRITE, [])
    assert.deepEqual(
      queries.map(({ name }) => name),
      ['read', undefined, undefined],
    )
    assert.deepEqual(warnings, [
      'A pooler does not keep prepared statements (SQLSTATE 26000), so they are not used any more.',
    ])
  })

  test('no statement again that had no name', async () => {
    const refusal = withCode('26000')
    const { sender, queries, warnings } = start({ preparedStatements: false }, refusal)
    assert.equal(await failureOf(sender.send(READ, [])), refusal)
    assert.deepEqual([queries.length, warnings], [1, []])
  })

  test('a statement five times that others are preferred to', async () => {
    const conflicts = Array.from({ length: 4 }, () => withCode('40001'))
    const { sender, queries } = start({}, ...conflicts)
    assert.deepEqual(await sender.send(WRITE, []), DONE)
    assert.equal(queries.length, 5)
  })

  test('it after a wait of chance, which may be twice as long each time', async (t) => {
    t.mock.method(Math, 'random', () => 20)
    const { sender } = start({}, withCode('40001'), withCode('40001'))
    const startedAt = performance.now()
    await sender.send(WRITE, [])
    // Timers may be due a millisecond early.
    assert.ok(performance.now() - startedAt >= 40 + 80 - 2)
  })

  test('it no sixth time', async () => {
    const conflicts = Array.from({ length: 6 }, () => withCode('40P01'))
    const { sender, queries } = start({}, ...conflicts)
    assert.ok((await failureOf(sender.send(WRITE, []))) instanceof StoreUnavailableError)
    assert.equal(queries.length, 5)
  })
})

suite('says what came of it', () => {
  test('to wait does not help: the error as it is', async () => {
    const error = withCode('42P01')
    const { sender } = start({}, error)
    assert.equal(await failureOf(sender.send(WRITE, [])), error)
  })

  test('it is known why it was not sent: the error as it is', async () => {
    const error = new StoreUnavailableError('No connection.')
    const { sender } = start({}, error)
    assert.equal(await failureOf(sender.send(WRITE, [])), error)
  })

  for (const [name, statement, error, isOutcomeUnknown] of [
    ['a write that was cancelled', WRITE, withCode('57014'), false],
    ['a write whose session ended', WRITE, withCode('57P01'), true],
    ['a read whose session ended', READ, withCode('57P01'), false],
  ] as const) {
    test(`${name}: ${isOutcomeUnknown ? 'unknown' : 'not carried out'}`, async () => {
      const { sender } = start({}, error)
      const failure = await failureOf(sender.send(statement, []))
      assert.ok(failure instanceof StoreUnavailableError)
      assert.equal(failure.message, 'The database cannot be used now.')
      assert.deepEqual([failure.isOutcomeUnknown, failure.cause], [isOutcomeUnknown, error])
    })
  }

  test('a write without an answer in time: unknown', async () => {
    const { sender } = start({ timeoutMs: 20 }, new Promise<never>(() => undefined))
    const failure = await failureOf(sender.send(WRITE, []))
    assert.ok(failure instanceof StoreUnavailableError)
    assert.deepEqual(
      [failure.isOutcomeUnknown, String(failure.cause)],
      [true, 'NoAnswerError: No answer within 20 ms.'],
    )
  })
})

suite('is ready', () => {
  test('if the server takes the statement that writes nothing', async () => {
    const { sender, queries } = start()
    await sender.ping(PING)
    assert.deepEqual(
      queries.map(({ text, values }) => [text, values]),
      [['SELECT 1', []]],
    )
  })

  for (const [name, error] of [
    ['the disk was full', withCode('53100')],
    ['the standby did not confirm a write', new UnconfirmedError()],
  ] as const) {
    test(`not for five seconds after ${name}`, async (t) => {
      let now = 1000
      t.mock.method(performance, 'now', () => now)
      const { sender, queries } = start({}, error)
      const failure = await failureOf(sender.send(WRITE, []))
      assert.equal(await failureOf(sender.ping(PING)), failure)
      now += 4999
      assert.equal(await failureOf(sender.ping(PING)), failure)
      assert.equal(queries.length, 1)
      now++
      await sender.ping(PING)
    })
  }

  test('again after a write that the server kept, and not after a read', async () => {
    const { sender } = start({}, withCode('53100'))
    const failure = await failureOf(sender.send(WRITE, []))
    await sender.send(READ, [])
    assert.equal(await failureOf(sender.ping(PING)), failure)
    await sender.send(WRITE, [])
    await sender.ping(PING)
  })

  for (const [name, statement, state] of [
    ['a read found no room', READ, '53100'],
    ['a write was cancelled', WRITE, '57014'],
  ] as const) {
    test(`although ${name}`, async () => {
      const { sender } = start({}, withCode(state))
      await failureOf(sender.send(statement, []))
      await sender.ping(PING)
    })
  }
})

test('can be closed if the pool lends nothing', () => {
  start().sender.close()
})
