import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { Pool } from 'pg'
import { postgresStore, type PostgresStore } from '../../../../src/stores/postgres/postgres-store.ts'
import { failure } from '../../../support/database/failures.ts'
import { needsDebian, PostgresServer } from '../../../support/wire/debian-servers.ts'

const create = (store: PostgresStore, id: bigint): Promise<boolean> => store.create('ann', { id, name: 'Fern' })

suite('a server and its standby', { skip: needsDebian }, () => {
  test('acknowledges nothing if somebody has the server wait no longer for its standby', async (t) => {
    const server = await PostgresServer.start(t)
    const pool = new Pool({ connectionString: server.url })
    t.after(() => pool.end())
    const store = postgresStore(pool)
    await store.migrate()
    await server.set('synchronous_standby_names', 'gone')
    await server.until(`SELECT 1 FROM pg_settings WHERE name = 'synchronous_standby_names' AND setting = 'gone'`)
    const unconfirmed = 'UnconfirmedError: The statement was committed, but its standby has not confirmed it.'
    for (const write of [() => create(store, 1n), () => store.delete('ann', 1n)]) {
      const failed = failure(write())
      await server.until(
        `SELECT 1 FROM pg_stat_activity WHERE CASE WHEN wait_event = 'SyncRep' THEN pg_cancel_backend(pid) END`,
      )
      const { isOutcomeUnknown, cause } = await failed
      assert.deepEqual([isOutcomeUnknown, String(cause)], [true, unconfirmed])
    }
  })
})
