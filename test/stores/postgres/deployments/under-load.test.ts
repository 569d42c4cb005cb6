// Programs that share a database, under load, while what stands behind them fails.
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

/** The longest outage. The others are shorter, so that their ends, when there is most to do, are apart. */
const OUTAGE_SECONDS = Number(process.env['TEST_OUTAGE_SECONDS'] ?? 8)

const CLIENTS = 64
const POOL_SIZE = 10
const RIVAL_COUNT = 8

/**
 * Puts two programs under load, lets something befall them, and checks that nothing is lost and nothing flooded.
 * @param servers on which sessions are counted
 * @param afterwards what happens once the programs serve again
 */
async function runUnderLoad(
  t: TestContext,
  url: string,
  servers: readonly PostgresServer[],
  disrupt: (programs: Program[], workload: Workload) => Promise<unknown>,
  afterwards?: () => Promise<unknown>,
): Promise<void> {
  // Longer than any client waits for an answer: no connection closes just as it is used again.
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

/** Settles once a program has listed, created and deleted. */
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
 * Most of the time is spent waiting, so it is spent together. One of them alone is usable within a second; on a busy
 * machine that takes as long as it takes, and the simulation says how soon a silent server is asked again.
 */
suite(
  'under load, loses nothing, floods nothing and is usable again',
  { skip: skipWithoutDebianServers, concurrency: 4 },
  () => {
    test(`while the table is locked for ${OUTAGE_SECONDS} s`, async (t) => {
      const server = await PostgresServer.start(t)
      await runUnderLoad(t, server.url, [server], async () => {
        const holder = await server.connect(t)
        await holder.query('BEGIN; LOCK TABLE plant_store_plants')
        await sleep(OUTAGE_SECONDS * 1000)
        await holder.query('ROLLBACK')
      })
    })

    test(`while its network lets nothing through for ${OUTAGE_SECONDS * 0.75} s`, async (t) => {
      const { server, proxy, url } = await startProxied(t)
      await runUnderLoad(t, url, [server], async ([program]) => {
        proxy.block()
        await Promise.all([sleep(OUTAGE_SECONDS * 750), assertUnavailable(program!, LIST)])
        proxy.unblock()
      })
    })

    test(`while its synchronous standby is gone for ${OUTAGE_SECONDS / 2} s`, async (t) => {
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

    test('while its primary dies and its standby is promoted, and comes back as a standby', async (t) => {
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

    test('while its server refuses connections, again and again', async (t) => {
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

    test('while its sessions are ended, or their connections cut', async (t) => {
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

    test('while one of the programs is killed, which the other does not notice', async (t) => {
      const server = await PostgresServer.start(t)
      await runUnderLoad(t, server.url, [server], async ([victim], workload) => {
        victim!.child.kill('SIGKILL')
        await workload.waitForProgress(100)
        assert.equal(workload.unavailable, 0)
      })
    })

    test('behind PgBouncer in transaction mode, where prepared statements are given up with one word', async (t) => {
      const server = await PostgresServer.start(t)
      const url = `postgres://plants@127.0.0.1:${await startPgbouncer(t, server, 5)}/postgres`
      await runUnderLoad(t, url, [], async (programs, workload) => {
        await workload.waitForProgress(1000)
        assert.deepEqual([workload.unavailable, workload.unknownOutcomes], [0, 0])
        for (const program of programs) {
          assert.match(
            String((await program.waitForLogEvent('warning'))['reason']),
            /^A pooler does not keep prepared statements/,
          )
          assert.equal(program.stderr.lines.filter((line) => line.includes('"event":"warning"')).length, 1)
        }
      })
    })
  },
)

suite('on a server of its own', { skip: skipWithoutDebianServers }, () => {
  test('programs act as one', async (t) => {
    // What is visible to whom is the same without waiting for the disk, and there is more of it.
    const { url } = await PostgresServer.start(t, ['synchronous_commit=off'])
    const programs = Array.from({ length: RIVAL_COUNT }, () => startProgram(t, { PLANT_STORE_URL: url }))
    await assertConsistentUnderContention(t, await Promise.all(programs), CLIENTS)
  })

  test('cancels what takes too long, also behind PgBouncer', async (t) => {
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

  test('acknowledges nothing if somebody has the server wait no longer for its standby', async (t) => {
    const server = await PostgresServer.start(t)
    await assertUnconfirmed(server, await startProgram(t, { PLANT_STORE_URL: server.url }))
  })

  test('notices a commit without its standby if the role gets no warnings, behind PgBouncer', async (t) => {
    const server = await PostgresServer.start(t)
    await server.query('ALTER ROLE plants SET client_min_messages = error')
    const url = `postgres://plants@127.0.0.1:${await startPgbouncer(t, server)}/postgres`
    await assertUnconfirmed(server, await startProgram(t, { PLANT_STORE_URL: url }))
  })

  for (const [name, setting] of [
    ['turned warnings off', 'client_min_messages = error'],
    ['set it to commit without its standby', 'synchronous_commit = local'],
  ] as const) {
    test(`notices a commit without its standby if another client of PgBouncer has ${name}`, async (t) => {
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

/** Has a server commit a create and a delete, alone and in groups, without the standby that it waits for. */
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
    // The first of a group is sent alone.
    while (!state.isAnswered) {
      await server.query(`SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'`)
      await sleep(20)
    }
    await answered
  }
  assert.match(
    String((await program.waitForLogEvent('failure'))['reason']),
    /UnconfirmedCommitError: The statement was committed/,
  )
}
