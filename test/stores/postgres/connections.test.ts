import assert from 'node:assert/strict'
import { EventEmitter, once } from 'node:events'
import { createServer, type AddressInfo, type Socket } from 'node:net'
import { suite, test, type TestContext } from 'node:test'
import { Pool, type Client } from 'pg'
import { StoreUnavailableError } from '../../../src/plants/store.ts'
import {
  postgresStore,
  type Connection,
  type PostgresStore,
  type Query,
  type Queryable,
  type QueryResult,
} from '../../../src/stores/postgres/postgres-store.ts'

const TIMEOUT_MS = 400
const UTF8 = ['off', 'UTF8', 'UTF8']

type Answer = QueryResult | Promise<QueryResult>

const changed: QueryResult = { rows: [], rowCount: 1 }

/** A pool of its own, as an embedder may have one: it says what it lends, and remembers what comes back. */
class ScriptedPool {
  /** What became of each connection that was given back: undefined if it may be used again. */
  readonly released: (Error | undefined)[] = []
  readonly queries: string[] = []
  /** How often its connections were asked whether they are fit for use. */
  checks = 0
  settings: readonly string[] = UTF8
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

  /** Lends nothing any more. What it returns says how often it was asked since. */
  lendNoMore(): () => number {
    let asked = 0
    this.lend = () => {
      asked++
      return never()
    }
    return () => asked
  }

  query(): Promise<QueryResult> {
    return Promise.reject(new Error('a pool that lends is not asked'))
  }

  connect(): Promise<Connection> {
    return this.lend()
  }
}

function serverError(code: string): Error {
  return Object.assign(new Error(`SQLSTATE ${code}`), { code })
}

/** A server for what comes beside the pool; the sockets are closed with the test. */
async function listen(t: TestContext, accept: (socket: Socket) => void): Promise<number> {
  const sockets: Socket[] = []
  const server = createServer((socket) => {
    sockets.push(socket.on('error', () => undefined))
    accept(socket)
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => {
    server.close()
    for (const socket of sockets) socket.destroy()
  })
  return (server.address() as AddressInfo).port
}

function open(pool: Queryable, timeoutMs = TIMEOUT_MS): PostgresStore {
  return postgresStore(pool, { timeoutMs })
}

const remove = (store: PostgresStore): Promise<boolean> => store.delete('ann', 1n)

async function failure(promise: Promise<unknown>): Promise<StoreUnavailableError> {
  const [outcome] = await Promise.allSettled([promise])
  assert.ok(outcome.status === 'rejected' && outcome.reason instanceof StoreUnavailableError)
  return outcome.reason
}

function never(): Promise<never> {
  return new Promise(() => undefined)
}

suite('cancels what is late', () => {
  /** A statement that ends so when its cancellation has come. */
  async function cancelled(t: TestContext, end: (resolve: (value: Answer) => void) => void): Promise<ScriptedPool> {
    const pool = new ScriptedPool()
    const ends: (() => void)[] = []
    pool.answer = () => new Promise((resolve) => ends.push(() => end(resolve)))
    pool.port = await listen(t, (socket) => {
      socket.once('data', () => {
        ends.pop()?.()
        socket.end()
      })
    })
    return pool
  }

  test('and knows that it was not carried out', async (t) => {
    const pool = await cancelled(t, (resolve) => resolve(Promise.reject(serverError('57014'))))
    const { isOutcomeUnknown, cause } = await failure(remove(open(pool, 1000)))
    assert.deepEqual([isOutcomeUnknown, (cause as Error).message], [false, 'SQLSTATE 57014'])
    assert.deepEqual(pool.released, [undefined])
  })

  test('and does not believe what was committed without the standby', async (t) => {
    const pool = await cancelled(t, (resolve) => resolve(changed))
    const store = open(pool)
    const error = await failure(remove(store))
    assert.deepEqual([error.isOutcomeUnknown, (error.cause as Error).name], [true, 'UnconfirmedError'])
    assert.deepEqual(pool.released, [undefined])
  })

  test('and closes a connection that it could not free', async (t) => {
    const pool = await cancelled(t, () => undefined)
    const { isOutcomeUnknown, cause } = await failure(remove(open(pool)))
    assert.deepEqual([isOutcomeUnknown, (cause as Error).message], [true, 'No answer within 400 ms.'])
    while (pool.released.length === 0) await new Promise(setImmediate)
    assert.equal(pool.released[0], cause)
  })

  test('once if the server was told, whatever it does', async (t) => {
    const pool = new ScriptedPool()
    let requests = 0
    pool.port = await listen(t, (socket) => {
      socket.once('data', () => {
        requests++
        socket.end()
      })
    })
    pool.answer = never
    await failure(remove(open(pool)))
    while (pool.released.length === 0) await new Promise(setImmediate)
    assert.equal(requests, 1)
  })

  test('not again if the statement is over by then', async (t) => {
    const pool = new ScriptedPool()
    let requests = 0
    let end: () => void = () => undefined
    pool.port = await listen(t, (socket) => {
      socket.once('data', (bytes) => {
        if (bytes.length === 16) {
          requests++
        } else {
          end()
          socket.end('N')
        }
      })
    })
    pool.answer = () => new Promise((resolve) => (end = () => resolve(changed)))
    await failure(remove(open(pool)))
    while (pool.released.length === 0) await new Promise(setImmediate)
    assert.equal(requests, 1)
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
    const { cause } = await failure(remove(open(pool, 2000)))
    assert.equal((cause as Error).message, 'SQLSTATE 57014')
    assert.deepEqual(pool.released, [undefined])
  })

  test('and closes a connection that does not tell how', async () => {
    const pool = new ScriptedPool()
    pool.answer = never
    const { isOutcomeUnknown, cause } = await failure(remove(open(pool)))
    assert.equal(isOutcomeUnknown, true)
    while (pool.released.length === 0) await new Promise(setImmediate)
    assert.equal(pool.released[0], cause)
  })

  test('again and again while the server says nothing, to which nothing is sent meanwhile', async (t) => {
    const pool = new ScriptedPool()
    let isSilent = true
    let end: () => void = () => undefined
    pool.port = await listen(t, (socket) => {
      socket.once('data', (bytes) => {
        if (isSilent) return
        if (bytes.length === 16) end()
        socket.end('N')
      })
    })
    pool.answer = () => new Promise((_, reject) => (end = () => reject(serverError('57014'))))
    const store = open(pool)
    const late = await failure(remove(store))
    assert.deepEqual([late.isOutcomeUnknown, pool.released], [true, []])
    const waiting = await failure(remove(store))
    assert.deepEqual([waiting.isOutcomeUnknown, pool.queries.length], [false, 1])
    isSilent = false
    pool.answer = () => changed
    while (pool.released.length === 0) await new Promise(setImmediate)
    assert.equal((pool.released[0] as { code?: string }).code, '57014')
    while (!(await remove(store).catch(() => false)));
  })

  test('no more often than twice if the server answers new connections only', async (t) => {
    const pool = new ScriptedPool()
    let requests = 0
    pool.port = await listen(t, (socket) => {
      socket.once('data', (bytes) => {
        if (bytes.length === 16) requests++
        else socket.end('N')
      })
    })
    pool.answer = never
    await failure(remove(open(pool)))
    while (pool.released.length === 0) await new Promise(setImmediate)
    assert.match(String(pool.released[0]), /No answer within 400 ms/)
    assert.equal(requests, 2)
  })

  test('and lets go of it when the store is closed', async (t) => {
    const pool = new ScriptedPool()
    pool.port = await listen(t, () => undefined)
    pool.answer = never
    const store = open(pool)
    await failure(remove(store))
    await failure(remove(store))
    assert.deepEqual(pool.released, [])
    store.close()
    while (pool.released.length === 0) await new Promise(setImmediate)
    assert.match(String(pool.released[0]), /No answer within 400 ms/)
  })
})

test('cancels the statement of a connection that broke, and closes it then', async (t) => {
  const pool = new ScriptedPool()
  const cancelled = new Promise<void>((resolve) => {
    void listen(t, (socket) => {
      socket.once('data', () => {
        assert.deepEqual(pool.released, [])
        resolve()
        socket.end()
      })
    }).then((port) => (pool.port = port))
  })
  while (pool.port === undefined) await new Promise(setImmediate)
  const broken = new Error('Connection terminated unexpectedly')
  pool.answer = () => Promise.reject(broken)
  const error = await failure(remove(open(pool, 4000)))
  assert.deepEqual([error.isOutcomeUnknown, error.cause], [true, broken])
  await cancelled
  while (pool.released.length === 0) await new Promise(setImmediate)
  assert.deepEqual(pool.released, [broken])
})

test('does not believe what was committed as somebody had the server wait no longer for its standby', async () => {
  const pool = new ScriptedPool()
  const store = open(pool)
  assert.equal(await remove(store), true)
  pool.answer = () => {
    pool.notices.emit('notice', { routine: 'SyncRepWaitForLSN' })
    return changed
  }
  const error = await failure(remove(store))
  const cause = 'UnconfirmedError: The statement was committed, but its standby has not confirmed it.'
  assert.deepEqual([error.isOutcomeUnknown, String(error.cause)], [true, cause])
  pool.answer = () => {
    pool.notices.emit('notice', { routine: 'exec_stmt_raise' })
    return changed
  }
  assert.equal(await remove(store), true)
  assert.deepEqual(pool.released, [undefined, undefined, undefined])
})

suite('gives a connection back after', () => {
  for (const [code, isClosed, isUnknown] of [
    ['55P03', false, false],
    ['53100', false, false],
    ['25006', true, false],
    ['57P01', true, true],
    ['08P01', true, true],
    ['25P04', true, true],
    ['40003', true, true],
  ] as const) {
    test(`${code}: ${isClosed ? 'closed' : 'open'}, and ${isUnknown ? 'knows not' : 'knows'} what came of it`, async () => {
      const pool = new ScriptedPool()
      const error = serverError(code)
      pool.answer = () => Promise.reject(error)
      assert.equal((await failure(remove(open(pool)))).isOutcomeUnknown, isUnknown)
      assert.deepEqual(pool.released, [isClosed ? error : undefined])
    })
  }
})

suite('uses no connection', () => {
  for (const [settings, message] of [
    [['on', 'UTF8', 'UTF8'], 'The server is read-only: a standby, or set so.'],
    [['off', 'LATIN1', 'UTF8'], 'The server_encoding is LATIN1; plants need UTF8.'],
    [['off', 'UTF8', 'LATIN1'], 'The client_encoding is LATIN1; plants need UTF8.'],
  ] as const) {
    test(settings.join(), async () => {
      const pool = new ScriptedPool()
      pool.settings = settings
      const [outcome] = await Promise.allSettled([remove(open(pool))])
      const error = (outcome as PromiseRejectedResult).reason as Error
      assert.equal((error.cause as Error | undefined)?.message ?? error.message, message)
      assert.deepEqual([pool.queries, pool.released.length], [[], 1])
    })
  }

  test('that came too late', async () => {
    const pool = new ScriptedPool()
    let lend: (connection: Connection) => void = () => undefined
    pool.lend = () => new Promise((resolve) => (lend = resolve))
    const error = await failure(remove(open(pool, 50)))
    assert.deepEqual([error.isOutcomeUnknown, (error.cause as Error).message], [false, 'No answer within 50 ms.'])
    lend(pool.connection())
    while (pool.released.length === 0) await new Promise(setImmediate)
    assert.deepEqual([pool.queries, pool.released], [[], [undefined]])
  })

  test('that was idle when another one broke, and has become read-only', async () => {
    const pool = new ScriptedPool()
    const [first, second, third] = [pool.connection(), pool.connection(), pool.connection()]
    const lent = [first, second, first, third]
    pool.lend = () => Promise.resolve(lent.shift()!)
    const store = open(pool)
    assert.equal(await remove(store), true)
    pool.answer = () => Promise.reject(serverError('57P01'))
    await failure(remove(store))
    pool.answer = () => changed
    // The check of the first fails, and that of the third does not.
    const query = first.query.bind(first)
    first.query = (asked) =>
      asked.text.includes('server_encoding') ? Promise.reject(serverError('57P01')) : query(asked)
    assert.equal(await remove(store), true)
    assert.deepEqual(
      pool.released.map((error) => error !== undefined),
      [false, true, true, false],
    )
  })

  test('whose check is not answered, nor asks the others that are as old', async (t) => {
    const pool = new ScriptedPool()
    pool.port = await listen(t, (socket) => socket.once('data', () => socket.end('N')))
    const [first, second, third, fourth] = [pool.connection(), pool.connection(), pool.connection(), pool.connection()]
    const lent = [first, second, third, first, second, fourth]
    pool.lend = () => Promise.resolve(lent.shift()!)
    const store = open(pool)
    assert.equal(await remove(store), true)
    assert.equal(await remove(store), true)
    pool.answer = () => Promise.reject(serverError('57P01'))
    await failure(remove(store))
    pool.answer = () => changed
    first.query = second.query = never
    assert.equal(await remove(store), true)
    assert.deepEqual(pool.released.map(String), [
      'undefined',
      'undefined',
      'Error: SQLSTATE 57P01',
      `NoAnswerError: No answer within ${TIMEOUT_MS / 4} ms.`,
      'Error: The server has gone.',
      'undefined',
    ])
  })
})

suite('checks a connection again that was idle while', () => {
  const others = {
    /** Another connection breaks. */
    async broke(pool: ScriptedPool, store: PostgresStore) {
      pool.answer = () => Promise.reject(serverError('57P01'))
      await failure(remove(store))
    },
    /** Another connection is closed, as its statement does not end. */
    async hung(pool: ScriptedPool, store: PostgresStore) {
      const { length } = pool.released
      pool.answer = never
      await failure(remove(store))
      while (pool.released.length === length) await new Promise(setImmediate)
    },
    /** No connection comes. */
    async wasSilent(pool: ScriptedPool, store: PostgresStore) {
      pool.lend = never
      await failure(remove(store))
    },
  }
  for (const events of [
    ['broke'],
    ['hung'],
    ['wasSilent'],
    // None of them has the store take it for checked again.
    ['broke', 'hung'],
    ['broke', 'wasSilent'],
  ] as const) {
    test(`another one ${events.join(', then one ')}`, async (t) => {
      const pool = new ScriptedPool()
      pool.port = await listen(t, (socket) => socket.once('data', () => socket.end('N')))
      const store = open(pool)
      const idle = pool.connection()
      pool.lend = () => Promise.resolve(idle)
      assert.equal(await remove(store), true)
      for (const event of events) {
        pool.answer = () => changed
        pool.lend = () => Promise.resolve(pool.connection())
        await others[event](pool, store)
      }
      pool.answer = () => changed
      pool.lend = () => Promise.resolve(idle)
      const { checks } = pool
      assert.equal(await remove(store), true)
      assert.equal(pool.checks - checks, 1)
    })
  }
})

test('cancels nothing if the server says that it has ended the session', async (t) => {
  const pool = new ScriptedPool()
  let requests = 0
  pool.port = await listen(t, (socket) => {
    requests++
    socket.end()
  })
  pool.answer = () => Promise.reject(serverError('57P01'))
  await failure(remove(open(pool)))
  while (pool.released.length === 0) await new Promise(setImmediate)
  assert.equal(requests, 0)
})

test('listens to a connection once, however often it is checked, so that its break does not end the process', async () => {
  const pool = new ScriptedPool()
  const [first, second] = [pool.connection(), pool.connection()]
  const lent = [first, second, first, second]
  pool.lend = () => Promise.resolve(lent.shift()!)
  const store = open(pool)
  await remove(store)
  await remove(store)
  pool.answer = () => Promise.reject(serverError('57P01'))
  await failure(remove(store))
  pool.answer = () => changed
  await remove(store)
  assert.equal(pool.checks, 3)
  assert.deepEqual([pool.notices.listenerCount('error'), pool.notices.listenerCount('notice')], [2, 2])
})

suite('outlives a session that ends with the packet that opens it', () => {
  /** A pool to a server that ends each session so. */
  async function openEndingPool(t: TestContext): Promise<Pool> {
    const port = await listen(t, (socket) => {
      // The password is right, the server is ready, and an administrator has it stop.
      const [welcome, ready] = ['R\0\0\0\x08\0\0\0\0', 'Z\0\0\0\x05I']
      const fields = 'SFATAL\0C57P01\0Mterminating connection due to administrator command\0\0'
      const length = String.fromCharCode(4 + fields.length)
      socket.once('data', () => socket.end(`${welcome}${ready}E\0\0\0${length}${fields}`))
    })
    const pool = new Pool({ host: '127.0.0.1', port, user: 'ann', database: 'plants' })
    t.after(() => pool.end())
    return pool
  }

  test('and carries nothing out', async (t) => {
    const pool = await openEndingPool(t)
    const { isOutcomeUnknown } = await failure(remove(open(pool)))
    assert.deepEqual([isOutcomeUnknown, pool.totalCount], [false, 0])
  })

  test('and listens once, however many stores share a pool', async (t) => {
    const pool = await openEndingPool(t)
    const stores = [open(pool), open(pool)]
    const connected = once(pool, 'connect') as Promise<[Client]>
    await Promise.all(stores.map((store) => failure(remove(store))))
    const [client] = await connected
    assert.deepEqual([pool.listenerCount('connect'), client.listenerCount('notice')], [1, 1])
  })
})

test('asks a connection once whether it is fit for use', async () => {
  const pool = new ScriptedPool()
  const connection = pool.connection()
  pool.lend = () => Promise.resolve(connection)
  const store = open(pool)
  for (let statements = 0; statements < 3; statements++) assert.equal(await remove(store), true)
  assert.equal(pool.checks, 1)
})

test('asks it no more often because the pool had none to lend', async () => {
  const pool = new ScriptedPool()
  const connection = pool.connection()
  const lends = [
    () => Promise.resolve(connection),
    () => Promise.reject(new Error('too many clients')),
    () => Promise.resolve(connection),
  ]
  pool.lend = () => lends.shift()!()
  const store = open(pool)
  assert.equal(await remove(store), true)
  await failure(remove(store))
  assert.equal(await remove(store), true)
  assert.equal(pool.checks, 1)
})

test('believes what comes of a statement after one that was committed without the standby', async () => {
  const pool = new ScriptedPool()
  const connection = pool.connection()
  pool.lend = () => Promise.resolve(connection)
  const store = open(pool)
  assert.equal(await remove(store), true)
  pool.answer = () => {
    pool.notices.emit('notice', { routine: 'SyncRepWaitForLSN' })
    return changed
  }
  await failure(remove(store))
  pool.answer = () => changed
  assert.equal(await remove(store), true)
})

test('lets an error of the code through as it is', async () => {
  const pool = new ScriptedPool()
  const bug = new TypeError('pool.options is undefined')
  pool.lend = () => Promise.reject(bug)
  await assert.rejects(remove(open(pool)), (error) => error === bug)
})

suite('while a server says nothing', () => {
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
    const lent = [first, second, first, third]
    pool.lend = () => Promise.resolve(lent.shift()!)
    const store = open(pool)
    assert.equal(await remove(store), true)
    pool.answer = () => Promise.reject(serverError('57P01'))
    await failure(remove(store))
    first.query = never
    assert.match(String((await failure(remove(store))).cause), /No answer within 400 ms/)
    assert.deepEqual(lent, [third])
    store.close()
  })
})

suite('while a server fails over', () => {
  test('asks the pool once again as soon as a connection was fit for use', async () => {
    const pool = new ScriptedPool()
    const store = open(pool, 600)
    pool.answer = () => Promise.reject(serverError('57P01'))
    await failure(remove(store))
    pool.answer = () => changed
    assert.equal(await remove(store), true)
    const asked = pool.lendNoMore()
    await failure(remove(store))
    assert.equal(asked(), 1)
  })

  test('does not wait for one connection alone', async () => {
    const pool = new ScriptedPool()
    const store = open(pool, 4000)
    pool.answer = () => Promise.reject(serverError('57P01'))
    await failure(remove(store))
    pool.answer = () => changed
    let hang: (connection: Connection) => void = () => undefined
    const lends = [
      () => new Promise<Connection>((resolve) => (hang = resolve)),
      () => Promise.resolve(pool.connection()),
    ]
    pool.lend = () => lends.shift()!()
    assert.equal(await remove(store), true)
    hang(pool.connection())
    while (pool.released.length < 3) await new Promise(setImmediate)
    assert.deepEqual([pool.released.at(-1), pool.queries.length], [undefined, 2])
  })

  test('says what the pool says if none can be made', async () => {
    const pool = new ScriptedPool()
    const store = open(pool)
    pool.answer = () => Promise.reject(serverError('57P01'))
    await failure(remove(store))
    const gone = new Error('no such file')
    pool.lend = () => {
      throw gone
    }
    assert.equal((await failure(remove(store))).cause, gone)
  })

  test('stops asking when its time is over', async () => {
    const pool = new ScriptedPool()
    const store = open(pool, 600)
    pool.answer = () => Promise.reject(serverError('57P01'))
    await failure(remove(store))
    const asked = pool.lendNoMore()
    await failure(remove(store))
    assert.equal(asked(), 2)
  })
})

suite('prepared statements', () => {
  for (const code of ['26000', '42P05']) {
    test(`are given up with one word after ${code}, and nothing fails`, async () => {
      const pool = new ScriptedPool()
      const warnings: string[] = []
      pool.answer = (query) => (query.name === undefined ? changed : Promise.reject(serverError(code)))
      const store = postgresStore(pool, { onWarning: (message) => warnings.push(message) })
      assert.deepEqual(await Promise.all([store.create('ann', { id: 1n, name: 'fern' }), remove(store)]), [true, true])
      assert.equal(await remove(store), true)
      assert.deepEqual(pool.queries.toSorted(), ['', '', '', 'plant-store create one', 'plant-store delete one'])
      const word = 'so they are not used any more.'
      assert.deepEqual(warnings, [`A pooler does not keep prepared statements (SQLSTATE ${code}), ${word}`])
    })
  }

  test('are given up without a word if nobody listens', async () => {
    const pool = new ScriptedPool()
    pool.answer = (query) => (query.name === undefined ? changed : Promise.reject(serverError('26000')))
    assert.equal(await remove(open(pool)), true)
  })
})

suite('a pool that lends nothing', () => {
  for (const [name, error, isUnknown] of [
    ['cannot reach the server', Object.assign(new Error(), { code: 'ECONNREFUSED', syscall: 'connect' }), false],
    ['does not find its name', Object.assign(new Error(), { code: 'ENOTFOUND', syscall: 'getaddrinfo' }), false],
    ['is told that the server starts', serverError('57P03'), false],
    ['breaks', new Error('Connection terminated unexpectedly'), true],
  ] as const) {
    test(`${name}: ${isUnknown ? 'nobody knows' : 'nothing was carried out'}`, async () => {
      const store = postgresStore({ query: () => Promise.reject(error) })
      assert.equal((await failure(remove(store))).isOutcomeUnknown, isUnknown)
    })
  }

  test('is given its time by the driver too, and waited for no longer', async () => {
    const asked: (number | undefined)[] = []
    const store = postgresStore(
      {
        query(query) {
          asked.push(query.query_timeout)
          return never()
        },
      },
      { timeoutMs: 50 },
    )
    assert.equal((await failure(remove(store))).isOutcomeUnknown, true)
    assert.deepEqual(asked, [50])
  })
})
