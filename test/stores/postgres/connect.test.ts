import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { connectSoon } from '../../../src/stores/postgres/connect.ts'
import type { Connection } from '../../../src/stores/postgres/postgres-store.ts'

const INTERVAL_MS = 500

class SlowPool {
  /** What comes of each time that the pool was asked, in order. */
  readonly asked: { lend: (connection: Connection) => void; fail: (error: Error) => void }[] = []
  readonly released: string[] = []

  connect(): Promise<Connection> {
    return new Promise((lend, fail) => this.asked.push({ lend, fail }))
  }

  connection(name: string): Connection {
    return {
      query: () => Promise.reject(new Error('not asked')),
      release: () => this.released.push(name),
      on: () => undefined,
    }
  }
}

/** A pool, in a time that goes on when the test says so. */
function slowPool(t: TestContext): SlowPool {
  t.mock.timers.enable({ apis: ['setInterval', 'setTimeout'] })
  return new SlowPool()
}

test('asks a pool once that connects at once', async (t) => {
  const pool = slowPool(t)
  const connection = pool.connection('first')
  const connecting = connectSoon(pool, 10_000)
  pool.asked[0]!.lend(connection)
  assert.equal(await connecting, connection)
  t.mock.timers.tick(5000)
  assert.deepEqual([pool.asked.length, pool.released], [1, []])
})

test('asks again and again, and gives back what comes after the first', async (t) => {
  const pool = slowPool(t)
  const connecting = connectSoon(pool, 10_000)
  t.mock.timers.tick(2 * INTERVAL_MS)
  assert.equal(pool.asked.length, 3)
  const second = pool.connection('second')
  pool.asked[1]!.lend(second)
  assert.equal(await connecting, second)
  pool.asked[0]!.lend(pool.connection('first'))
  pool.asked[2]!.fail(new Error('third'))
  await new Promise(setImmediate)
  assert.deepEqual(pool.released, ['first'])
})

test('fails only if nothing else is under way', async (t) => {
  const pool = slowPool(t)
  const connecting = connectSoon(pool, 10_000)
  t.mock.timers.tick(INTERVAL_MS)
  pool.asked[0]!.fail(new Error('first'))
  await new Promise(setImmediate)
  pool.asked[1]!.fail(new Error('second'))
  await assert.rejects(connecting, { message: 'second' })
})

test('fails with what the pool throws', async (t) => {
  const pool = slowPool(t)
  pool.connect = () => {
    throw new Error('no certificate')
  }
  await assert.rejects(connectSoon(pool, 10_000), { message: 'no certificate' })
})

test('asks no more when its time is over, and takes what comes then', async (t) => {
  const pool = slowPool(t)
  const connecting = connectSoon(pool, 2 * INTERVAL_MS + 1)
  t.mock.timers.tick(10 * INTERVAL_MS)
  assert.equal(pool.asked.length, 3)
  const connection = pool.connection('first')
  pool.asked[0]!.lend(connection)
  assert.equal(await connecting, connection)
})
