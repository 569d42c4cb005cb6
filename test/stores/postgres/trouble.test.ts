import assert from 'node:assert/strict'
import { after, before, beforeEach, suite, test } from 'node:test'
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

// Other troubles are those of `test/simulation/postgres/`.
suite('a Postgres store in trouble, on a server', { timeout: 60_000 }, () => {
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

  test('shows nobody the plant by which it finds out whether the disk is full', { skip: needsServer }, async (t) => {
    const store = postgresStore(openPool())
    const makeRoom = await fillUp(direct)
    t.after(makeRoom)
    await failure(store.create('ann', fern))
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
