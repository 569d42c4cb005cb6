// Programs behind poolers that share sessions among clients, or that distribute statements over servers.
import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { startProgram, type Program } from '../../../support/program/program.ts'
import {
  skipWithoutDebianServers,
  skipWithoutPgpool,
  PostgresServer,
  query,
  startPgbouncer,
  startPgpool,
} from '../../../support/wire/debian-servers.ts'

const createUrl = (port: number) => `postgres://plants@127.0.0.1:${port}/postgres`

function createPlant(program: Program, id: number) {
  return program.fetch('/plants', { method: 'POST', body: `{"id":${id},"name":"plant ${id}"}` })
}

async function listNames(program: Program) {
  const response = await program.fetch('/plants')
  assert.equal(response.status, 200)
  return ((await response.json()) as { name: string }[]).map(({ name }) => name)
}

/** Creates and deletes plants, one at a time and concurrently, and checks the list after each step. */
async function assertReadsWrites(program: Program) {
  for (let id = 1; id <= 3; id++) assert.equal((await createPlant(program, id)).status, 200)
  assert.deepEqual(await listNames(program), ['plant 1', 'plant 2', 'plant 3'])
  const created = await Promise.all([4, 5, 6, 7].map((id) => createPlant(program, id)))
  assert.deepEqual(new Set(created.map(({ status }) => status)), new Set([200]))
  const deleted = await Promise.all(
    [1, 2, 3, 4, 5, 6].map((id) => program.fetch(`/plants/${id}`, { method: 'DELETE' })),
  )
  assert.deepEqual(new Set(deleted.map(({ status }) => status)), new Set([204]))
  assert.deepEqual(await listNames(program), ['plant 7'])
  assert.equal((await program.fetch('/readyz')).status, 200)
}

suite(
  'the store keeps using the same table behind PgBouncer in transaction mode',
  { skip: skipWithoutDebianServers },
  () => {
    for (const [name, sql] of [
      ['changed its search_path', 'SET search_path TO other'],
      ['emptied its search_path, as pg_dump does', `SELECT pg_catalog.set_config('search_path', '', false)`],
      [
        'created a temporary table with the same name',
        'CREATE TEMP TABLE plant_store_plants (LIKE other.plant_store_plants INCLUDING ALL)',
      ],
    ] as const) {
      test(`even if another client of the session has ${name}`, async (t) => {
        const server = await PostgresServer.start(t)
        await server.query(`CREATE SCHEMA other; CREATE TABLE other.plant_store_plants (owner text NOT NULL,
        id bigint NOT NULL, name text NOT NULL, tag text, PRIMARY KEY (owner, id))`)
        // All clients share one session.
        const url = createUrl(await startPgbouncer(t, server, 1))
        const program = await startProgram(t, { PLANT_STORE_URL: url })
        await program.waitUntilReady()
        await query(url, sql)
        await assertReadsWrites(program)
        assert.deepEqual(await server.query('SELECT name FROM public.plant_store_plants'), [{ name: 'plant 7' }])
        assert.deepEqual(await server.query('SELECT name FROM other.plant_store_plants'), [])
      })
    }
  },
)

suite(
  'behind Pgpool-II with load balancing, lists include all acknowledged writes',
  { skip: skipWithoutPgpool },
  () => {
    for (const setting of [
      'allow_sql_comments = off',
      'allow_sql_comments = on',
      'statement_level_load_balance = on',
      'memory_cache_enabled = on',
    ]) {
      test(`with ${setting}`, async (t) => {
        const primary = await PostgresServer.start(t)
        const standby = await PostgresServer.startStandby(t, primary, 'standby')
        const url = createUrl(await startPgpool(t, [primary, standby], [setting]))
        const program = await startProgram(t, { PLANT_STORE_URL: url })
        await program.waitUntilReady()
        // The standby doesn't replay writes from now on.
        await standby.query('SELECT pg_wal_replay_pause()')
        await assertReadsWrites(program)
      })
    }
  },
)
