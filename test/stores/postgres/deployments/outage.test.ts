import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { needsServer } from '../../../support/database/postgres-server.ts'
import { startProgram, type Program } from '../../../support/program/program.ts'
import { useProxiedDatabase } from '../../../support/database/servers/proxied-database.ts'
import { Workload } from '../../../support/database/histories/workload.ts'

async function listError(program: Program): Promise<{ status: number; error: number | undefined }> {
  const response = await program.fetch('/plants?limit=1')
  const { error } = (await response.json()) as { error?: number }
  return { status: response.status, error }
}

test('loses nothing that it acknowledged while its sessions are ended under load', { skip: needsServer }, async (t) => {
  const { database, url } = await useProxiedDatabase(t)
  const program = await startProgram(t, { PLANT_STORE_URL: url })
  const workload = new Workload()
  workload.start(program, 16)
  const pool = database.openPool()
  for (let round = 0; round < 5; round++) {
    await workload.progress(50)
    await pool.query(
      `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
        WHERE datname = current_database() AND pid <> pg_backend_pid()`,
    )
  }
  await workload.progress(50)
  await workload.finish(program)
  t.diagnostic(`${workload.acknowledged} operations acknowledged, ${workload.refused + workload.unknown} answered 503`)
})

test('answers 503 while its server is away, and serves soon after', { skip: needsServer }, async (t) => {
  const { proxy, url } = await useProxiedDatabase(t)
  const program = await startProgram(t, { PLANT_STORE_URL: url })
  const workload = new Workload()
  workload.start(program, 16)
  for (let round = 0; round < 3; round++) {
    await workload.progress(50)
    await proxy.close()
    assert.deepEqual(await listError(program), { status: 503, error: 50300 })
    await proxy.open()
    const returned = performance.now()
    while ((await listError(program)).status === 503) await sleep(20)
    await workload.progress(1)
    // Most of it is for a busy machine.
    assert.ok(performance.now() - returned < 10_000)
  }
  await workload.finish(program)
  t.diagnostic(`${workload.acknowledged} operations acknowledged, ${workload.refused + workload.unknown} answered 503`)
})

test('keeps no connection to a server that says nothing', { skip: needsServer }, async (t) => {
  const { database, proxy, url } = await useProxiedDatabase(t)
  const program = await startProgram(t, { PLANT_STORE_URL: url, PLANT_STORE_STORE_TIMEOUT_MS: '500' })
  const workload = new Workload()
  workload.start(program, 16)
  await workload.progress(50)
  proxy.block()
  const blocked = performance.now()
  for (let request = 0; request < 3; request++) {
    assert.deepEqual(await listError(program), { status: 503, error: 50300 })
  }
  const waited = performance.now() - blocked
  assert.ok(waited < 5000, `3 answers took ${waited} ms`)
  proxy.unblock()
  await workload.progress(50)
  await workload.finish(program)
  const { rows } = await database
    .openPool()
    .query<{ count: number }>(
      `SELECT count(*)::int FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()`,
    )
  assert.ok(rows[0]!.count <= 10)
})

test('loses nothing that it acknowledged when it is killed under load', { skip: needsServer }, async (t) => {
  const { url } = await useProxiedDatabase(t)
  const victim = await startProgram(t, { PLANT_STORE_URL: url })
  const survivor = await startProgram(t, { PLANT_STORE_URL: url })
  const workload = new Workload()
  workload.start(victim, 16)
  workload.start(survivor, 16)
  await workload.progress(200)
  victim.child.kill('SIGKILL')
  await workload.progress(50)
  await workload.finish(survivor)
  assert.equal(workload.refused, 0)
  t.diagnostic(`${workload.acknowledged} operations acknowledged`)
})
