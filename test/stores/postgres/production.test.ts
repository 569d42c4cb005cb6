import assert from 'node:assert/strict'
import { suite, test, type TestContext } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { needsDebian, PostgresServer, SessionCount, startHaproxy } from '../../support/debian-servers.ts'
import { startProgram, type Program } from '../../support/program.ts'
import { openTcpProxy } from '../../support/tcp-proxy.ts'
import { Workload } from '../../support/workload.ts'

const CLIENTS = 64
const POOL_SIZE = 10

/** Two programs under load, and how many sessions they have on each of the servers. */
async function startLoad(
  t: TestContext,
  url: string,
  servers: readonly PostgresServer[],
): Promise<{ programs: readonly Program[]; workload: Workload; counts: readonly SessionCount[] }> {
  // Longer than any client waits for an answer: no connection closes just as it is used again.
  const environment = { PLANT_STORE_URL: url, PLANT_STORE_KEEP_ALIVE_TIMEOUT_MS: '60000' }
  const programs = [await startProgram(t, environment), await startProgram(t, environment)]
  const workload = new Workload()
  for (const program of programs) workload.start(program, CLIENTS / programs.length)
  await workload.progress(100)
  return { programs, workload, counts: servers.map((server) => new SessionCount(server)) }
}

/** Settles with the milliseconds until each program has listed, created and deleted. */
async function recovery(programs: readonly Program[]): Promise<number> {
  const start = performance.now()
  const calls: [string, { method?: string; body?: string }][] = [
    ['/plants?limit=1', {}],
    ['/plants', { method: 'POST', body: '{"id":-1,"name":"-1"}' }],
    ['/plants/-1', { method: 'DELETE' }],
  ]
  async function succeed(program: Program, [path, init]: (typeof calls)[0]): Promise<void> {
    for (;;) {
      const response = await program.fetch(path, init)
      await response.arrayBuffer()
      if (response.status !== 503) return
      await sleep(50)
    }
  }
  await Promise.all(programs.flatMap((program) => calls.map((call) => succeed(program, call))))
  return performance.now() - start
}

/** Ends the load and checks what came of it. */
async function assertSound(
  t: TestContext,
  { programs, workload, counts }: Awaited<ReturnType<typeof startLoad>>,
  recoveredAfter: number,
): Promise<void> {
  await workload.progress(100)
  const most = await Promise.all(counts.map((count) => count.stop()))
  await workload.finish(programs[0]!)
  const { acknowledged, unavailable, unknown } = workload
  t.diagnostic(
    `${acknowledged} acknowledged, ${unavailable - unknown} answered 50300, ${unknown} answered 50301, ` +
      `${most.join(' and ')} sessions at most, usable after ${Math.round(recoveredAfter)} ms`,
  )
  for (const sessions of most) assert.ok(sessions <= POOL_SIZE * programs.length, `${sessions} sessions`)
  assert.ok(recoveredAfter < 1000, `usable after ${recoveredAfter} ms`)
}

suite('under load, loses nothing and floods nothing', { skip: needsDebian }, () => {
  test('while the table is locked for 20 s', async (t) => {
    const server = await PostgresServer.start(t)
    const load = await startLoad(t, server.url, [server])
    const holder = await server.connect(t)
    await holder.query('BEGIN; LOCK TABLE plant_store_plants')
    await sleep(20_000)
    await holder.query('ROLLBACK')
    await assertSound(t, load, await recovery(load.programs))
  })

  test('while its network lets nothing through for 15 s', async (t) => {
    const server = await PostgresServer.start(t)
    const proxy = await openTcpProxy({ host: '127.0.0.1', port: server.port })
    t.after(() => proxy.close())
    const load = await startLoad(t, `postgres://plants@127.0.0.1:${proxy.port}/postgres`, [server])
    proxy.block()
    await sleep(15_000)
    proxy.unblock()
    await assertSound(t, load, await recovery(load.programs))
  })

  test('while its synchronous standby is gone for 10 s', async (t) => {
    const primary = await PostgresServer.start(t)
    const standby = await PostgresServer.startStandby(t, primary, 'standby')
    await primary.set('synchronous_standby_names', 'standby')
    const load = await startLoad(t, primary.url, [primary])
    await standby.stop('immediate')
    await sleep(10_000)
    assert.equal((await load.programs[0]!.fetch('/readyz')).status, 503)
    await standby.begin()
    await primary.until(`SELECT 1 FROM pg_stat_replication WHERE sync_state = 'sync'`)
    await assertSound(t, load, await recovery(load.programs))
  })

  test('while its primary dies and its standby is promoted, and comes back as a standby', async (t) => {
    const first = await PostgresServer.start(t)
    const second = await PostgresServer.startStandby(t, first, 'second')
    await first.set('synchronous_standby_names', 'second')
    const port = await startHaproxy(t, [first, second])
    const load = await startLoad(t, `postgres://plants@127.0.0.1:${port}/postgres`, [first, second])
    await first.stop('immediate')
    await sleep(1000)
    await second.control('promote', '--wait')
    const recoveredAfter = await recovery(load.programs)
    await first.follow(second)
    await load.workload.progress(100)
    assert.deepEqual(await first.query('SELECT pg_is_in_recovery() AS standby'), [{ standby: true }])
    await assertSound(t, load, recoveredAfter)
  })
})
