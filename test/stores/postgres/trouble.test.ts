import assert from 'node:assert/strict'
import { after, before, beforeEach, suite, test, type TestContext } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Pool, PoolConfig } from 'pg'
import type { NewPlant } from '../../../src/plants/plant.ts'
import { MAX_PAGE_BYTES, StoreUnavailableError } from '../../../src/plants/store.ts'
import { postgresStore, type PostgresStore } from '../../../src/stores/postgres/postgres-store.ts'
import { needsServer, type TestDatabase } from '../../support/database/postgres-server.ts'
import { failure, failureOf } from '../../support/database/failures.ts'
import { fillUp } from '../../support/database/full-table.ts'
import { openProxiedDatabase } from '../../support/database/servers/proxied-database.ts'
import type { TcpProxy } from '../../support/wire/tcp-proxy.ts'

const fern: NewPlant = { id: 1n, name: 'fern' }

suite('a Postgres store in trouble', { timeout: 60_000 }, () => {
  let database: TestDatabase
  let proxy: TcpProxy
  let close: () => Promise<void>
  /** Connected past the proxy. */
  let direct: Pool

  before(async () => {
    ;({ database, proxy, close } = await openProxiedDatabase())
    direct = database.openPool()
    await postgresStore(direct).migrate()
  })
  after(() => close())
  beforeEach(() => direct.query('TRUNCATE plant_store_plants'))

  function openPool(config?: PoolConfig): Pool {
    return database.openPool({ port: proxy.port, ...config })
  }

  /** What one call of each kind is rejected with while the table is locked. */
  async function failuresWhileLocked(store: PostgresStore, action?: (pids: number[]) => unknown): Promise<unknown[]> {
    const holder = await direct.connect()
    await holder.query('BEGIN; LOCK TABLE plant_store_plants')
    const failures = failuresOf(store)
    await action?.(await lockWaiters(direct, 3))
    await failures
    await holder.query('ROLLBACK')
    holder.release()
    return failures
  }

  test('is unavailable while the server refuses connections, and serves as soon as it accepts them', async () => {
    const store = postgresStore(openPool())
    await store.ping()
    await proxy.close()
    assertUnavailable(await failuresOf(store), /Connection terminated|ECONNREFUSED|ECONNRESET/)
    assertUnavailable(await failuresOf(store), /ECONNREFUSED/)
    await assert.rejects(store.ping(), StoreUnavailableError)
    await assert.rejects(store.migrate(), StoreUnavailableError)
    await proxy.open()
    assert.equal(await store.create('ann', fern), true)
  })

  test('knows nothing of a write whose connection breaks, and ends it', { skip: needsServer }, async () => {
    const store = postgresStore(openPool())
    const failures = await failuresWhileLocked(store, async () => {
      proxy.cut()
      await noLockWaiters(direct)
    })
    assertUnavailable(failures, /Connection terminated unexpectedly|ECONNRESET/)
    assert.deepEqual(outcomesUnknown(failures), [true, false, true])
    assert.equal(await store.delete('ann', 2n), false)
  })

  test('cancels a statement that takes too long, and keeps its connection', { skip: needsServer }, async () => {
    const pool = openPool()
    const store = postgresStore(pool, { timeoutMs: 1000 })
    const before: number[] = []
    const failures = await failuresWhileLocked(store, (pids) => before.push(...pids))
    assertUnavailable(failures, /canceling statement due to user request/)
    assert.deepEqual(outcomesUnknown(failures), [false, false, false])
    const pids = await Promise.all(
      [1, 2, 3].map(() => pool.query<{ pid: number }>('SELECT pg_backend_pid() AS pid, pg_sleep(0.1)')),
    )
    assert.deepEqual(pids.map(({ rows }) => rows[0]!.pid).toSorted(), before.toSorted())
  })

  for (const setting of ['statement_timeout', 'lock_timeout']) {
    test(`is unavailable if the server ends the statement by its ${setting}`, { skip: needsServer }, async () => {
      const store = postgresStore(openPool({ [setting]: 300 }))
      const failures = await failuresWhileLocked(store)
      assertUnavailable(failures, new RegExp(setting.replace('_', ' ')))
      assert.deepEqual(outcomesUnknown(failures), [false, false, false])
      assert.equal(await store.create('ann', fern), true)
    })
  }

  for (const [connectionTimeoutMillis, reason] of [
    [500, /timeout exceeded when trying to connect/],
    [0, /No answer within 2000 ms/],
  ] as const) {
    const name = `is unavailable while the pool has no connection to spare, and closes none: ${reason.source}`
    test(name, { skip: needsServer }, async () => {
      const pool = openPool({ max: 1, connectionTimeoutMillis })
      const store = postgresStore(pool, { timeoutMs: 2000 })
      await store.ping()
      let removed = 0
      pool.on('remove', () => removed++)
      const client = await pool.connect()
      assertUnavailable(await failuresOf(store), reason)
      client.release()
      assert.equal(await store.create('ann', fern), true)
      assert.equal(removed, 0)
    })
  }

  test('is unavailable once the host has ended the pool', async () => {
    const pool = openPool()
    await pool.end()
    assertUnavailable(await failuresOf(postgresStore(pool)), /after calling end on the pool/)
  })

  test('keeps no connection to a server that is read-only', { skip: needsServer }, async () => {
    const pool = openPool({ options: '-c default_transaction_read_only=on' })
    const store = postgresStore(pool)
    assertUnavailable(await failuresOf(store), /The server is read-only/)
    await assert.rejects(store.ping(), StoreUnavailableError)
    assert.equal(pool.totalCount, 0)
  })

  test('outlives the break of an idle connection, also where the host does not listen to the pool', async () => {
    const pool = openPool()
    const store = postgresStore(pool)
    await store.ping()
    const removed = new Promise((resolve) => pool.once('remove', resolve))
    proxy.cut()
    await removed
    assert.equal(await store.create('ann', fern), true)
  })

  suite('with a full disk', () => {
    /** A store that has failed to create a plant, as if there were no room for it. */
    async function openFull(t: TestContext): Promise<{ store: PostgresStore; makeRoom: () => Promise<unknown> }> {
      const store = postgresStore(openPool())
      assert.equal(await store.create('ann', fern), true)
      const makeRoom = await fillUp(direct)
      t.after(makeRoom)
      await failure(store.create('ann', { id: 2n, name: 'moss' }))
      return { store, makeRoom }
    }

    test('is not ready while there is no room, though it can delete, and is as soon as there is', async (t) => {
      const { store, makeRoom } = await openFull(t)
      assert.equal(await store.delete('ann', fern.id), true)
      await failure(store.ping())
      await makeRoom()
      const nextTry = performance.now() + 1000
      t.mock.method(performance, 'now', () => nextTry)
      await store.ping()
    })

    test('shows nobody the plant by which it finds out', { skip: needsServer }, async (t) => {
      const { store, makeRoom } = await openFull(t)
      await makeRoom()
      await direct.query(`
        CREATE FUNCTION wait() RETURNS trigger LANGUAGE plpgsql AS $$
          BEGIN PERFORM pg_advisory_xact_lock(1); RETURN OLD; END $$;
        CREATE TRIGGER wait BEFORE DELETE ON plant_store_plants FOR EACH ROW EXECUTE FUNCTION wait()`)
      const holder = await direct.connect()
      t.after(() => holder.release(true))
      t.after(() => direct.query('DROP FUNCTION wait CASCADE'))
      await holder.query('BEGIN; SELECT pg_advisory_xact_lock(1)')
      const pinged = store.ping()
      await lockWaiters(direct, 1)
      const count = `SELECT count(*)::int AS count FROM plant_store_plants WHERE owner = ''`
      assert.deepEqual((await direct.query(count)).rows, [{ count: 0 }])
      await holder.query('ROLLBACK')
      await pinged
      assert.deepEqual((await direct.query(count)).rows, [{ count: 0 }])
    })
  })

  test('gives up a server that never answers, and its connections', { skip: needsServer }, async () => {
    const pool = openPool({ connectionTimeoutMillis: 1000 })
    const store = postgresStore(pool, { timeoutMs: 1000 })
    await Promise.all([store.ping(), store.ping(), store.ping()])
    proxy.block()
    const failures = Array.from({ length: 20 }, () => failuresOf(store))
    assertUnavailable((await Promise.all(failures)).flat(), /timeout|No answer|No statement was free/)
    proxy.unblock()
    assert.equal(await store.create('bob', fern), true)
    assert.equal(pool.waitingCount, 0)
    // One, and those that asked whether the server is back.
    assert.ok(pool.totalCount <= 5, `${pool.totalCount} connections`)
  })

  test('serves again after a silence of the server that the pool would sit out', { skip: needsServer }, async () => {
    const store = postgresStore(openPool({ connectionTimeoutMillis: 0 }), { timeoutMs: 1000, maxInFlight: 1 })
    proxy.block()
    assertUnavailable(await failuresOf(store), /No answer within 1000 ms/)
    assertUnavailable(await failuresOf(store), /No answer within 1000 ms/)
    proxy.unblock()
    assert.equal(await store.create('bob', fern), true)
  })

  test('sends a statement again that was rolled back in favour of another one', { skip: needsServer }, async () => {
    const store = postgresStore(openPool({ options: '-c default_transaction_isolation=repeatable\\ read' }))
    await store.create('ann', fern)
    const rival = await direct.connect()
    await rival.query('BEGIN; DELETE FROM plant_store_plants')
    const deleted = store.delete('ann', fern.id)
    await lockWaiters(direct, 1)
    await rival.query('COMMIT')
    rival.release()
    assert.equal(await deleted, false)
  })
})

/** What one call of each kind is rejected with; undefined where it is not. */
async function failuresOf(store: PostgresStore): Promise<unknown[]> {
  const page = { limit: 1, maxBytes: MAX_PAGE_BYTES }
  const calls = [store.create('ann', fern), store.list('ann', page), store.delete('ann', 1n)]
  return Promise.all(calls.map(failureOf))
}

function assertUnavailable(failures: readonly unknown[], reason: RegExp): void {
  for (const failure of failures) {
    assert.ok(failure instanceof StoreUnavailableError, String(failure))
    assert.match(`${failure.message} ${String(failure.cause)}`, reason)
  }
}

/** Whether each of the failures says that its outcome is unknown. */
function outcomesUnknown(failures: readonly unknown[]): boolean[] {
  return failures.map((failure) => (failure as StoreUnavailableError).isOutcomeUnknown)
}

/** Settles once no session waits for a lock. */
async function noLockWaiters(pool: Pool): Promise<void> {
  while ((await lockWaiters(pool, 0)).length > 0) await sleep(10)
}

/** Waits until so many sessions wait for a lock. */
async function lockWaiters(pool: Pool, count: number): Promise<number[]> {
  for (;;) {
    const { rows } = await pool.query<{ pid: number }>(
      `SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`,
    )
    if (rows.length >= count) return rows.map(({ pid }) => pid)
    await sleep(10)
  }
}
