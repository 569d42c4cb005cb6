// Programs that share a database, under load, while their database server, network or pooler fails.
import assert from 'node:assert/strict'
import { suite, test, type TestContext } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { assertConsistentUnderContention, Workload } from '../../../support/database/histories/workload.ts'
import { startProgram, type Program } from '../../../support/program/program.ts'
import {
  waitUntilResponding,
  trackPeakSessions,
  skipWithoutDebianServers,
  PostgresServer,
  query,
  startPrimaryProxy,
  startPgbouncer,
} from '../../../support/wire/debian-servers.ts'
import { openTcpProxy } from '../../../support/wire/tcp-proxy.ts'

/** The longest outage. The others are shorter, so that they don't all end at the same time and cause a load peak. */
const OUTAGE_SECONDS = Number(process.env['TEST_OUTAGE_SECONDS'] ?? 8)

const CLIENTS = 64
const POOL_SIZE = 10
const RIVAL_COUNT = 8

/**
 * Puts two programs under load, calls `disrupt`, and checks that no acknowledged write is lost and that the programs
 * never open more sessions than their pools allow.
 * @param servers the servers whose sessions are counted
 * @param afterwards called when the programs have recovered
 */
async function runUnderLoad(
  t: TestContext,
  url: string,
  servers: readonly PostgresServer[],
  disrupt: (programs: Program[], workload: Workload) => Promise<unknown>,
  afterwards?: () => Promise<unknown>,
): Promise<void> {
  // Longer than any client waits for a response, so that no connection closes just when a client reuses it.
  const environment = { PLANT_STORE_URL: url, PLANT_STORE_KEEP_ALIVE_TIMEOUT_MS: '60000' }
  const programs = await Promise.all([1, 2].map(() => startProgram(t, environment)))
  await Promise.all(programs.map((program) => program.waitUntilReady()))
  const counts = servers.map(trackPeakSessions)
  const workload = new Workload()
  for (const program of programs) workload.start(program, CLIENTS / programs.length)
  await workload.waitForProgress(100)

  await disrupt(programs, workload)
  const left = programs.filter(({ child }) => !child.killed)
  const startedAt = performance.now()
  await Promise.all(left.map(waitUntilRecovered))
  const recoveredAfter = performance.now() - startedAt
  await afterwards?.()
  await workload.waitForProgress(100)

  const most = await Promise.all(counts.map((stop) => stop()))
  await workload.stopAndVerify(left[0]!)
  const { acknowledged, unavailable: refused, unknownOutcomes: unknown } = workload
  t.diagnostic(`${acknowledged} acknowledged, ${refused} answered 50300, ${unknown} answered 50301`)
  t.diagnostic(`${most.join(' and ')} sessions at most, usable after ${Math.round(recoveredAfter)} ms`)
  for (const sessions of most) assert.ok(sessions <= POOL_SIZE * programs.length, `${sessions} sessions`)
}

type Call = Parameters<Program['fetch']>

const LIST: Call = ['/plants?limit=1']
const create = (id: number): Call => ['/plants', { method: 'POST', body: `{"id":${id},"name":"${id}"}` }]
const remove = (id: number): Call => [`/plants/${id}`, { method: 'DELETE' }]

/** Resolves when a program has listed, created and deleted without a 503. */
async function waitUntilRecovered(program: Program) {
  const settling = [LIST, create(-1), remove(-1)].map(async (call) => {
    while ((await program.fetch(...call)).status === 503) await sleep(50)
  })
  await Promise.all(settling)
}

async function assertUnavailable(program: Program, call: Call, error = 50300) {
  const response = await program.fetch(...call)
  assert.deepEqual([response.status, ((await response.json()) as { error?: number }).error], [503, error])
}

async function startProxied(t: TestContext) {
  const server = await PostgresServer.start(t)
  const proxy = await openTcpProxy({ host: '127.0.0.1', port: server.port })
  t.after(() => proxy.close())
  return { server, proxy, url: `postgres://plants@127.0.0.1:${proxy.port}/postgres` }
}

/**
 * These tests mostly wait, so they run concurrently. A single program recovers within a second, but a busy machine may
 * take longer, so no test limits the time. The simulation checks how soon an unresponsive server is probed again.
 */
suite('the standalone server under load', { skip: skipWithoutDebianServers, concurrency: 4 }, () => {
  test(`no acknowledged write is lost while the table is locked for ${OUTAGE_SECONDS} s`, async (t) => {
    const server = await PostgresServer.start(t)
    await runUnderLoad(t, server.url, [server], async () => {
      const holder = await server.connect(t)
      await holder.query('BEGIN; LOCK TABLE plant_store_plants')
      await sleep(OUTAGE_SECONDS * 1000)
      await holder.query('ROLLBACK')
    })
  })

  test(`no acknowledged write is lost while the network drops all packets for ${OUTAGE_SECONDS * 0.75} s`, async (t) => {
    const { server, proxy, url } = await startProxied(t)
    await runUnderLoad(t, url, [server], async ([program]) => {
      proxy.block()
      await Promise.all([sleep(OUTAGE_SECONDS * 750), assertUnavailable(program!, LIST)])
      proxy.unblock()
    })
  })

  test(`no acknowledged write is lost while the synchronous standby is down for ${OUTAGE_SECONDS / 2} s`, async (t) => {
    const primary = await PostgresServer.start(t)
    const standby = await PostgresServer.startStandby(t, primary, 'standby')
    await primary.alterSystem('synchronous_standby_names', 'standby')
    await runUnderLoad(t, primary.url, [primary], async () => {
      await standby.stop('immediate')
      await sleep(OUTAGE_SECONDS * 500)
      await standby.launch()
      await primary.waitForRows(`SELECT 1 FROM pg_stat_replication WHERE sync_state = 'sync'`)
    })
  })

  test('no acknowledged write is lost in a failover even if the old primary rejoins as a standby', async (t) => {
    const first = await PostgresServer.start(t)
    const second = await PostgresServer.startStandby(t, first, 'second')
    await first.alterSystem('synchronous_standby_names', 'second')
    const port = await startPrimaryProxy(t, [first, second])
    async function failOver(): Promise<void> {
      await first.stop('immediate')
      await sleep(1000)
      await second.runPgCtl('promote', '--wait')
      await waitUntilResponding(port)
    }
    await runUnderLoad(t, `postgres://plants@127.0.0.1:${port}/postgres`, [first, second], failOver, () =>
      first.rejoinAsStandby(second),
    )
    assert.deepEqual(await first.query('SELECT pg_is_in_recovery() AS standby'), [{ standby: true }])
  })

  test('no acknowledged write is lost while the server repeatedly refuses connections', async (t) => {
    const { server, proxy, url } = await startProxied(t)
    await runUnderLoad(t, url, [server], async ([program], workload) => {
      for (let round = 0; round < 3; round++) {
        await proxy.close()
        await assertUnavailable(program!, LIST)
        await proxy.open()
        await workload.waitForProgress(50)
      }
    })
  })

  test('no acknowledged write is lost when sessions are terminated and connections dropped', async (t) => {
    const { server, proxy, url } = await startProxied(t)
    const end = `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'plant-store'`
    await runUnderLoad(t, url, [server], async (_, workload) => {
      for (let round = 0; round < 3; round++) {
        await server.query(end)
        await workload.waitForProgress(50)
        proxy.dropConnections()
        await workload.waitForProgress(50)
      }
    })
  })

  test('no acknowledged write is lost when another standalone server is killed', async (t) => {
    const server = await PostgresServer.start(t)
    await runUnderLoad(t, server.url, [server], async ([victim], workload) => {
      victim!.child.kill('SIGKILL')
      await workload.waitForProgress(100)
      assert.equal(workload.unavailable, 0)
    })
  })

  test('no write fails behind a PgBouncer that does not support prepared statements', async (t) => {
    const server = await PostgresServer.start(t)
    const url = `postgres://plants@127.0.0.1:${await startPgbouncer(t, server, 5)}/postgres`
    await runUnderLoad(t, url, [], async (programs, workload) => {
      await workload.waitForProgress(1000)
      assert.deepEqual([workload.unavailable, workload.unknownOutcomes], [0, 0])
      for (const program of programs) {
        assert.match(
          String((await program.waitForLogEvent('warning'))['reason']),
          /^The connection pooler does not keep prepared statements/,
        )
        assert.equal(program.stderr.lines.filter((line) => line.includes('"event":"warning"')).length, 1)
      }
    })
  })
})

suite('the standalone server with a PostgreSQL server', { skip: skipWithoutDebianServers }, () => {
  test('remains consistent under contention with seven other servers on the same database', async (t) => {
    // Not waiting for the disk increases throughput, and doesn't affect when writes become visible.
    const { url } = await PostgresServer.start(t, ['synchronous_commit=off'])
    const programs = Array.from({ length: RIVAL_COUNT }, () => startProgram(t, { PLANT_STORE_URL: url }))
    await assertConsistentUnderContention(t, await Promise.all(programs), CLIENTS)
  })

  test('cancels a statement that times out, even behind PgBouncer', async (t) => {
    const server = await PostgresServer.start(t)
    const program = await startProgram(t, {
      PLANT_STORE_URL: `postgres://plants@127.0.0.1:${await startPgbouncer(t, server)}/postgres`,
      PLANT_STORE_STORE_TIMEOUT_MS: '2500',
    })
    const holder = await server.connect(t)
    await holder.query('BEGIN; LOCK TABLE plant_store_plants')
    await assertUnavailable(program, create(1))
    // After the failed write, the store probes with a write of its own, which waits for the lock too.
    const waiting = `SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query NOT LIKE '%repeat%'`
    assert.deepEqual(await server.query(waiting), [])
    await holder.query('ROLLBACK')
    assert.equal((await program.fetch(...create(1))).status, 200)
  })

  test('never acknowledges a write if its wait for the standby was canceled', async (t) => {
    const server = await PostgresServer.start(t)
    await assertUnconfirmed(server, await startProgram(t, { PLANT_STORE_URL: server.url }))
  })

  test('detects a commit without standby confirmation even if the role has turned off warnings', async (t) => {
    const server = await PostgresServer.start(t)
    await server.query('ALTER ROLE plants SET client_min_messages = error')
    const url = `postgres://plants@127.0.0.1:${await startPgbouncer(t, server)}/postgres`
    await assertUnconfirmed(server, await startProgram(t, { PLANT_STORE_URL: url }))
  })

  for (const [name, setting] of [
    ['turned off warnings', 'client_min_messages = error'],
    ['set synchronous_commit to local', 'synchronous_commit = local'],
  ] as const) {
    test(`detects a commit without standby confirmation even if another client of PgBouncer has ${name}`, async (t) => {
      const settings = [`synchronous_standby_names='gone'`, 'synchronous_commit=local']
      const server = await PostgresServer.start(t, settings)
      const url = `postgres://plants@127.0.0.1:${await startPgbouncer(t, server, 1)}/postgres`
      const program = await startProgram(t, { PLANT_STORE_URL: url })
      await program.waitUntilReady()
      await query(url, `SET ${setting}`)
      await assertUnconfirmed(server, program, () => server.alterSystem('synchronous_commit', 'on'))
    })
  }
})

/** Commits creates and deletes without confirmation by the standby, alone and in batches. Each must fail with 50301. */
async function assertUnconfirmed(
  server: PostgresServer,
  program: Program,
  begin = () => server.alterSystem('synchronous_standby_names', 'gone'),
) {
  for (const id of [1, 2, 3]) assert.equal((await program.fetch(...create(id))).status, 200)
  await begin()
  const settings = `SELECT 1 FROM pg_settings WHERE name = 'synchronous_standby_names' AND setting = 'gone'`
  await server.waitForRows(`${settings} AND current_setting('synchronous_commit') = 'on'`)
  for (const calls of [[create(4)], [remove(1)], [5, 6, 7].map(create), [2, 3, 4].map(remove)]) {
    const answered = Promise.all(calls.map((call) => assertUnavailable(program, call, 50301)))
    const state = { isAnswered: false }
    void answered.finally(() => (state.isAnswered = true))
    // The first of several concurrent writes is sent alone, so there may be two commits to cancel.
    while (!state.isAnswered) {
      await server.query(`SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'`)
      await sleep(20)
    }
    await answered
  }
  assert.match(
    String((await program.waitForLogEvent('failure'))['reason']),
    /UnconfirmedCommitError: The transaction was committed/,
  )
}
