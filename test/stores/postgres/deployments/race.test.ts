import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Plant } from '../../../../src/plants/plant.ts'
import { checkHistory, type Listing, type Operation } from '../../../support/database/history.ts'
import { needsServer, openDatabase } from '../../../support/database/postgres-server.ts'
import { startProgram, type Program } from '../../../support/program/program.ts'

const SECONDS = Number(process.env['TEST_RACE_SECONDS'] ?? 5)
const PROCESSES = 8
const CLIENTS = 64
const IDS = 200

test('processes that share a database act as one', { skip: needsServer }, async (t) => {
  const database = await openDatabase()
  // What is visible to whom is the same without waiting for the disk, and there is more of it.
  const pool = database.openPool()
  await pool.query(`ALTER DATABASE ${database.config.database} SET synchronous_commit = off`)
  const programs = await Promise.all(
    Array.from({ length: PROCESSES }, () => startProgram(t, { PLANT_STORE_URL: database.url })),
  )
  t.after(() => database.close())

  const operations: Operation[] = []
  const listings: Listing[] = []
  let clock = 0

  async function operate(program: Program, kind: Operation['kind'], id: number): Promise<void> {
    const start = clock++
    const name = `${id} ${start}`
    const body = JSON.stringify({ id, name })
    const [path, init] =
      kind === 'create' ? ['/plants', { method: 'POST', body }] : [`/plants/${id}`, { method: 'DELETE' }]
    const response = await program.fetch(path, init)
    await response.arrayBuffer()
    const [succeeded, refused] = kind === 'create' ? [200, 409] : [204, 404]
    assert.ok(response.status === succeeded || response.status === refused, `${kind} was answered ${response.status}`)
    operations.push({ kind, id, name, start, end: clock++, succeeded: response.status === succeeded })
  }

  async function list(program: Program): Promise<void> {
    const start = clock++
    const response = await program.fetch('/plants')
    const plants = (await response.json()) as Plant[]
    assert.equal(response.status, 200)
    listings.push({ start, end: clock++, plants: plants.map(({ name }) => ({ id: parseInt(name), name })) })
    const ids = listings.at(-1)!.plants.map(({ id }) => id)
    assert.deepEqual(
      ids,
      ids.toSorted((a, b) => a - b),
    )
  }

  const deadline = performance.now() + SECONDS * 1000
  await Promise.all(
    Array.from({ length: CLIENTS }, async (_, client) => {
      const program = programs[client % PROCESSES]!
      while (performance.now() < deadline) {
        // Some ids are wanted more than others.
        const id = Math.floor(Math.random() ** 2 * IDS)
        if (Math.random() < 0.05) await list(program)
        else await operate(program, Math.random() < 0.5 ? 'create' : 'delete', id)
      }
    }),
  )
  await list(programs[0]!)

  const { rows } = await pool.query<{ deadlocks: string }>(
    'SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()',
  )
  t.diagnostic(`${operations.length} operations, ${listings.length} lists, ${rows[0]!.deadlocks} deadlocks`)
  checkHistory(operations, listings)
  for (const kind of ['create', 'delete']) {
    assert.ok(operations.some((operation) => operation.kind === kind && operation.succeeded))
    assert.ok(operations.some((operation) => operation.kind === kind && !operation.succeeded))
  }
})
