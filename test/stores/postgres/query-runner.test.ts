import assert from 'node:assert/strict'
import { EventEmitter, once } from 'node:events'
import { suite, test } from 'node:test'
import { Pool, type Client } from 'pg'
import {
  postgresStore,
  type Connection,
  type ConnectionPool,
  type PostgresStore,
  type Query,
  type QueryResult,
} from '../../../src/stores/postgres/postgres-store.ts'
import { failure, serverError } from '../../support/database/failures.ts'
import { FIT } from '../../support/database/pool-of.ts'
import { takeMessages } from '../../support/wire/message-server.ts'
import { until } from '../../support/until.ts'

const TIMEOUT_MS = 400

type Answer = QueryResult | Promise<QueryResult>

const changed: QueryResult = { rows: [], rowCount: 1 }

/** A pool of its own, as an embedder may have one: it says what it lends, and remembers what comes back. */
class ScriptedPool {
  /** What became of each connection that was given back: undefined if it may be used again. */
  readonly released: (Error | undefined)[] = []
  readonly queries: string[] = []
  /** How often its connections were asked whether they are fit for use. */
  checks = 0
  settings = FIT
  /** Has its connections pass on what the server says beside its answers. */
  readonly notices = new EventEmitter<{ error: [Error]; notice: [{ routine?: string }] }>().setMaxListeners(0)
  /** Where statements are cancelled. */
  port: number | undefined
  answer: (query: Query) => Answer = () => changed
  lend: () => Promise<Connection> = () => Promise.resolve(this.connection())

  connection(answer = (query: Query): Answer => this.answer(query)): Connection {
    const backend = this.port === undefined ? {} : { processID: 7, secretKey: 8, host: '127.0.0.1', port: this.port }
    return {
      ...backend,
      query: async (query) => {
        if (query.text.includes('server_encoding')) {
          this.checks++
          return { rows: [this.settings], rowCount: 1 }
        }
        this.queries.push(query.name ?? '')
        return answer(query)
      },
      release: (error) => this.released.push(error),
      on: this.notices.on.bind(this.notices),
    }
  }

  /** Lends these, one after the other. Returns those that are left. */
  lendInTurn(...connections: Connection[]): readonly Connection[] {
    this.lend = () => Promise.resolve(connections.shift()!)
    return connections
  }

  /** Ends the session of each statement that is sent. */
  breakNext(): void {
    this.answer = () => Promise.reject(serverError('57P01'))
  }

  /** Settles once so many connections have come back. */
  returned(count = 1): Promise<void> {
    return until(() => this.released.length >= count)
  }

  /** Lends nothing any more. What it returns says how often it was asked since. */
  lendNoMore(): () => number {
    let asked = 0
    this.lend = () => {
      asked++
      return never()
    }
    return () => asked
  }

  connect(): Promise<Connection> {
    return this.lend()
  }
}

/** Takes what comes beside the pool, a message of each client. */
async function listen(...[t, take]: Parameters<typeof takeMessages>): Promise<number> {
  return (await takeMessages(t, take)).port
}

function open(pool: ConnectionPool, timeoutMs = TIMEOUT_MS): PostgresStore {
  return postgresStore(pool, { timeoutMs })
}

const remove = (store: PostgresStore): Promise<boolean> => store.delete('ann', 1n)

function never(): Promise<never> {
  return new Promise(() => undefined)
}

suite('cancels what is late', { concurrency: true }, () => {
  test('and knows that it was not carried out', async (t) => {
    const pool = new ScriptedPool()
    let end: () => void = () => undefined
    pool.answer = () => new Promise((_, reject) => (end = () => reject(serverError('57014'))))
    pool.port = await listen(t, (socket) => {
      end()
      socket.end()
    })
    const { isOutcomeUnknown, cause } = await failure(remove(open(pool, 1000)))
    assert.deepEqual([isOutcomeUnknown, (cause as Error).message], [false, 'SQLSTATE 57014'])
    assert.deepEqual(pool.released, [undefined])
  })

  test('and keeps a connection that does not tell how, if its statement ends soon', async () => {
    const pool = new ScriptedPool()
    let end: () => void = () => undefined
    pool.answer = () => new Promise((_, reject) => (end = () => reject(serverError('57014'))))
    const connection = Object.defineProperty(pool.connection(), 'processID', {
      // Asked for in order to cancel.
      get: () => void setTimeout(end, 20),
    })
    pool.lend = () => Promise.resolve(connection)
    const { cause } = await failure(remove(open(pool, 1000)))
    assert.equal((cause as Error).message, 'SQLSTATE 57014')
    assert.deepEqual(pool.released, [undefined])
  })

  test('again and again while the server says nothing, to which nothing is sent meanwhile', async (t) => {
    const pool = new ScriptedPool()
    let isSilent = true
    let end: () => void = () => undefined
    pool.port = await listen(t, (socket, { length }) => {
      if (isSilent) return
      if (length === 16) end()
      socket.end('N')
    })
    pool.answer = () => new Promise((_, reject) => (end = () => reject(serverError('57014'))))
    const store = open(pool)
    const late = await failure(remove(store))
    assert.deepEqual([late.isOutcomeUnknown, pool.released], [true, []])
    const waiting = await failure(remove(store))
    assert.deepEqual([waiting.isOutcomeUnknown, pool.queries.length], [false, 1])
    isSilent = false
    pool.answer = () => changed
    await pool.returned()
    assert.equal((pool.released[0] as { code?: string }).code, '57014')
    assert.equal(await remove(store), true)
  })

  test('no more often than twice if the server answers new connections only', async (t) => {
    const pool = new ScriptedPool()
    let requests = 0
    pool.port = await listen(t, (socket, { length }) => (length === 16 ? requests++ : socket.end('N')))
    pool.answer = never
    await failure(remove(open(pool)))
    await pool.returned()
    assert.match(String(pool.released[0]), /No answer within 400 ms/)
    assert.equal(requests, 2)
  })
})

test('cancels the statement of a connection that broke, and closes it then', async (t) => {
  const pool = new ScriptedPool()
  const releasedBefore: unknown[] = []
  pool.port = await listen(t, (socket) => {
    releasedBefore.push([...pool.released])
    socket.end()
  })
  const broken = new Error('Connection terminated unexpectedly')
  pool.answer = () => Promise.reject(broken)
  const error = await failure(remove(open(pool, 4000)))
  assert.deepEqual([error.isOutcomeUnknown, error.cause], [true, broken])
  await pool.returned()
  assert.deepEqual([releasedBefore, pool.released], [[[]], [broken]])
})

suite('uses no connection', { concurrency: true }, () => {
  test('that finds the table in another schema than the first one', async () => {
    const pool = new ScriptedPool()
    const store = open(pool)
    pool.settings = FIT.with(4, null)
    assert.equal(await remove(store), true)
    pool.settings = FIT
    assert.equal(await remove(store), true)
    pool.settings = FIT.with(4, 'other')
    const { cause } = await failure(remove(store))
    const message = 'The search_path leads to other.plant_store_plants now, and led to the schema public before.'
    assert.equal((cause as Error).message, message)
    pool.settings = FIT.with(4, null)
    assert.equal(await remove(store), true)
  })
})

test('cancels nothing if the server says that it has ended the session', async (t) => {
  const pool = new ScriptedPool()
  let requests = 0
  pool.port = await listen(t, () => requests++)
  pool.breakNext()
  await failure(remove(open(pool)))
  await pool.returned()
  assert.equal(requests, 0)
})

test('outlives a session that ends with the packet that opens it, and listens once for all stores of a pool', async (t) => {
  const port = await listen(t, (socket) => {
    // The password is right, the server is ready, and an administrator has it stop.
    const [welcome, ready] = ['R\0\0\0\x08\0\0\0\0', 'Z\0\0\0\x05I']
    const fields = 'SFATAL\0C57P01\0Mterminating connection due to administrator command\0\0'
    socket.end(`${welcome}${ready}E\0\0\0${String.fromCharCode(4 + fields.length)}${fields}`)
  })
  const pool = new Pool({ host: '127.0.0.1', port, user: 'ann', database: 'plants' })
  t.after(() => pool.end())
  const connected = once(pool, 'connect') as Promise<[Client]>
  const failures = await Promise.all([open(pool), open(pool)].map((store) => failure(remove(store))))
  assert.deepEqual([...failures.map(({ isOutcomeUnknown }) => isOutcomeUnknown), pool.totalCount], [false, false, 0])
  const [client] = await connected
  assert.deepEqual([pool.listenerCount('connect'), client.listenerCount('notice')], [1, 1])
})

test('lets an error of the code through as it is', async () => {
  const pool = new ScriptedPool()
  const bug = new TypeError('pool.options is undefined')
  pool.lend = () => Promise.reject(bug)
  await assert.rejects(remove(open(pool)), (error) => error === bug)
})

suite('while a server says nothing', { concurrency: true }, () => {
  test('asks the pool for no connection after one did not come', async (t) => {
    const pool = new ScriptedPool()
    pool.port = await listen(t, () => undefined)
    const store = open(pool)
    assert.equal(await remove(store), true)
    const asked = pool.lendNoMore()
    await failure(remove(store))
    await failure(remove(store))
    assert.equal(asked(), 1)
    store.close()
  })

  test('asks the pool for no connection after one did not say whether it is fit for use', async (t) => {
    const pool = new ScriptedPool()
    pool.port = await listen(t, () => undefined)
    const [first, second, third] = [pool.connection(), pool.connection(), pool.connection()]
    const left = pool.lendInTurn(first, second, third)
    const store = open(pool)
    assert.equal(await remove(store), true)
    pool.breakNext()
    await failure(remove(store))
    third.query = never
    assert.match(String((await failure(remove(store))).cause), /No answer within 100 ms/)
    assert.match(String((await failure(remove(store))).cause), /No answer within 400 ms/)
    assert.deepEqual(left, [])
    store.close()
  })
})

suite('while a server fails over', { concurrency: true }, () => {
  test('asks the pool once again as soon as a connection was fit for use', async () => {
    const pool = new ScriptedPool()
    const store = open(pool, 600)
    pool.breakNext()
    await failure(remove(store))
    pool.answer = () => changed
    assert.equal(await remove(store), true)
    const asked = pool.lendNoMore()
    await failure(remove(store))
    assert.equal(asked(), 1)
  })
})
