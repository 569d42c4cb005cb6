import { test } from 'node:test'
import { needsServer, openDatabase } from '../../../support/database/postgres-server.ts'
import { race } from '../../../support/database/race.ts'
import { startProgram } from '../../../support/program/program.ts'

const PROCESSES = 8

test('processes that share a database act as one', { skip: needsServer }, async (t) => {
  const database = await openDatabase()
  // What is visible to whom is the same without waiting for the disk, and there is more of it.
  const pool = database.openPool()
  await pool.query(`ALTER DATABASE ${database.config.database} SET synchronous_commit = off`)
  const programs = await Promise.all(
    Array.from({ length: PROCESSES }, () => startProgram(t, { PLANT_STORE_URL: database.url })),
  )
  t.after(() => database.close())

  await race(t, programs, 64)
  const { rows } = await pool.query<{ deadlocks: string }>(
    'SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()',
  )
  t.diagnostic(`${rows[0]!.deadlocks} deadlocks`)
})
