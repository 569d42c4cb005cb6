import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { Client, type PoolConfig } from 'pg'
import { isUnavailable, type MaybePromise } from '../../src/plants/store.ts'
import { postgresStore, type PostgresStoreOptions } from '../../src/stores/postgres/postgres-store.ts'
import { openProxiedDatabase, skipWithoutPostgres } from '../support/postgres-database.ts'
import { waitUntil } from '../support/wait-until.ts'

type Scope = Parameters<typeof openProxiedDatabase>[0]

async function setUp(t: Scope, poolConfig: PoolConfig = {}, options: PostgresStoreOptions = {}) {
  const { database, proxy, url } = await openProxiedDatabase(t)
  const { port } = new URL(url)
  const pool = database.openPool({ host: '127.0.0.1', port: Number(port), ...poolConfig })
  const store = postgresStore(pool, options)
  await store.migrate()
  const admin = new Client(database.config)
  admin.on('error', () => undefined)
  await admin.connect()
  t.after(() => admin.end())
  return { pool, store, proxy, admin }
}

/** Blocks creates and deletes until the transaction of the client ends. */
const lockTable = (admin: Client) => admin.query('BEGIN; LOCK TABLE plant_store_plants')
const countWaiting = async (admin: Client) =>
  (await admin.query(`SELECT FROM pg_locks WHERE NOT granted AND relation = 'plant_store_plants'::regclass`)).rowCount
const endOthers = (admin: Client) =>
  admin.query(
    'SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()',
  )

async function assertUnavailable(call: MaybePromise<unknown>, isOutcomeUnknown: boolean) {
  await assert.rejects(Promise.resolve(call), (error) => {
    assert.ok(isUnavailable(error), String(error))
    assert.equal(error.isOutcomeUnknown, isOutcomeUnknown)
    return true
  })
}

const plant = { id: 1n, name: 'Monstera' }

describe('postgresStore', { skip: skipWithoutPostgres }, () => {
  test('reports that nothing was done if the connection is refused', async (t) => {
    const { pool, store, proxy } = await setUp(t)
    await proxy.close()
    await waitUntil(() => pool.totalCount === 0)
    await assertUnavailable(store.delete('ada', 1n), false)
    await assertUnavailable(store.create('ada', plant), false)
    await proxy.open()
    assert.equal(await store.create('ada', plant), true)
  })

  test('reports that nothing was done if no connection is free in time', async (t) => {
    const { pool, store } = await setUp(t, { max: 1, connectionTimeoutMillis: 2000 })
    const connection = await pool.connect()
    await assertUnavailable(store.create('ada', plant), false)
    connection.release()
    assert.equal(await store.create('ada', plant), true)
  })

  test('reports an unknown outcome if the session ends during the statement', async (t) => {
    const { store, admin } = await setUp(t)
    await lockTable(admin)
    const creating = assertUnavailable(store.create('ada', plant), true)
    const listing = assertUnavailable(store.list('ada', { limit: 1, maxBytes: 1000 }), false)
    await waitUntil(async () => (await countWaiting(admin)) === 2)
    await endOthers(admin)
    await Promise.all([creating, listing])
  })

  test('reports that nothing was done if the server cancels the statement', async (t) => {
    const { pool, store, admin } = await setUp(t, { statement_timeout: 1500 })
    await lockTable(admin)
    await assertUnavailable(store.create('ada', plant), false)
    assert.equal(pool.totalCount, 0)
    await admin.query('ROLLBACK')
    assert.equal(await store.create('ada', plant), true)
  })

  test('closes a connection that does not respond in time, with an unknown outcome', async (t) => {
    const { pool, store, proxy } = await setUp(t, {}, { timeoutMs: 2000 })
    proxy.block()
    await assertUnavailable(store.delete('ada', 1n), true)
    await waitUntil(() => pool.totalCount === 0)
    proxy.unblock()
    assert.equal(await store.delete('ada', 1n), false)
  })

  test('reports that nothing was done if a create waits too long for an earlier one', async (t) => {
    const { pool, store } = await setUp(t, { max: 1 }, { timeoutMs: 500 })
    const connection = await pool.connect()
    const first = store.create('ada', plant)
    await waitUntil(() => pool.waitingCount === 1)
    const second = assertUnavailable(store.create('ada', { id: 2n, name: 'x' }), false)
    const start = performance.now()
    await waitUntil(() => performance.now() > start + 500)
    connection.release()
    assert.equal(await first, true)
    await second
  })

  test('drops a connection whose server is read-only', async (t) => {
    const { pool, store } = await setUp(t, { max: 1 })
    await pool.query('SET default_transaction_read_only = on')
    await assertUnavailable(store.ping(), false)
    assert.equal(pool.totalCount, 0)
    await store.ping()
  })

  test('survives the end of an idle session', async (t) => {
    const { pool, store, admin } = await setUp(t)
    await endOthers(admin)
    await waitUntil(() => pool.idleCount === 0)
    assert.equal(await store.create('ada', plant), true)
  })

  test('many stores on a pool share their listener', async (t) => {
    const { pool } = await setUp(t)
    for (let count = 0; count < 20; count++) postgresStore(pool)
    assert.equal(pool.listenerCount('error'), 1)
  })

  test('names every address of a host that is unreachable', async () => {
    const addresses = ['connect ECONNREFUSED ::1:5432', 'connect ECONNREFUSED 127.0.0.1:5432']
    const error = new AggregateError(addresses.map((message) => new Error(message)))
    const store = postgresStore({ query: () => Promise.reject(error) })
    await assert.rejects(store.ping(), { message: `The database is unavailable: ${addresses.join('; ')}` })
  })
})
