import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import type { Query, QueryResult } from '../../../src/stores/postgres/postgres-store.ts'
import { Sender, type SenderOptions } from '../../../src/stores/postgres/sender.ts'
import type { Statement } from '../../../src/stores/postgres/statements.ts'
import { failureOf, serverError } from '../../support/database/failures.ts'

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

  test('a statement that loses after a wait of chance, which may be twice as long each time', async (t) => {
    t.mock.method(Math, 'random', () => 20)
    const { sender } = start({}, serverError('40001'), serverError('40001'))
    const startedAt = performance.now()
    await sender.send(WRITE, [])
    // Timers may be due a millisecond early.
    assert.ok(performance.now() - startedAt >= 40 + 80 - 2)
  })
})

test('asks by statements that write nothing whether a plant can be created, if the table refuses what is tried', async () => {
  const { sender, queries } = start({}, serverError('53100'), serverError('23514'))
  await failureOf(sender.send(CREATE, []))
  await sender.ping()
  const words = queries
    .slice(1)
    .map(({ text }) => [...text.matchAll(/^ *([A-Z]+)/gm)].map(([, word]) => word).join(' '))
  assert.deepEqual(words, ['INSERT DELETE', 'DELETE', 'INSERT'])
})
