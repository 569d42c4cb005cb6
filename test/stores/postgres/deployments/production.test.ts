import assert from 'node:assert/strict'
import { suite, test, type TestContext } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import {
  answering,
  needsDebian,
  PostgresServer,
  SessionCount,
  startHaproxy,
} from '../../../support/wire/debian-servers.ts'
import { startProgram, type Program } from '../../../support/program/program.ts'
import { openTcpProxy } from '../../../support/wire/tcp-proxy.ts'
import { Workload } from '../../../support/database/histories/workload.ts'

/** The longest outage. The others are shorter, so that their ends, when there is most to do, are apart. */
const SECONDS = Number(process.env['TEST_OUTAGE_SECONDS'] ?? 8)

const CLIENTS = 64
const POOL_SIZE = 10

/** What a call of the store may take, with the program's default settings. */
const STORE_TIMEOUT_MS = 10_000

/** Two programs under load. */
class Load {
  readonly programs: readonly Program[]
  readonly #workload = new Workload()
  readonly #counts: readonly SessionCount[]

  private constructor(programs: readonly Program[], servers: readonly PostgresServer[]) {
    this.programs = programs
    this.#counts = servers.map((server) => new SessionCount(server))
    for (const program of programs) this.#workload.start(program, CLIENTS / programs.length)
  }

  /** @param servers on which sessions are counted */
  static async start(t: TestContext, url: string, servers: readonly PostgresServer[]): Promise<Load> {
    // Longer than any client waits for an answer: no connection closes just as it is used again.
    const environment = { PLANT_STORE_URL: url, PLANT_STORE_KEEP_ALIVE_TIMEOUT_MS: '60000' }
    const programs = [await startProgram(t, environment), await startProgram(t, environment)]
    await Promise.all(programs.map((program) => program.ready()))
    const load = new Load(programs, servers)
    await load.#workload.progress(100)
    return load
  }

  /** Settles with the milliseconds until each program has listed, created and deleted. */
  async recovery(): Promise<number> {
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
    await Promise.all(this.programs.flatMap((program) => calls.map((call) => succeed(program, call))))
    return performance.now() - start
  }

  /** Settles once the load goes on. */
  async proceed(): Promise<void> {
    await this.#workload.progress(100)
  }

  /** Ends the load and checks what came of it. */
  async assertSound(t: TestContext, recoveredAfter: number): Promise<void> {
    await this.proceed()
    const most = await Promise.all(this.#counts.map((count) => count.stop()))
    await this.#workload.finish(this.programs[0]!)
    const { acknowledged, refused, unknown } = this.#workload
    t.diagnostic(
      `${acknowledged} acknowledged, ${refused} answered 50300, ${unknown} answered 50301, ` +
        `${most.join(' and ')} sessions at most, usable after ${Math.round(recoveredAfter)} ms`,
    )
    for (const sessions of most) assert.ok(sessions <= POOL_SIZE * this.programs.length, `${sessions} sessions`)
    // One of these tests alone has it within a second. Here others may leave it little of the processor, but no client
    // waits until its time is over.
    assert.ok(recoveredAfter < STORE_TIMEOUT_MS, `usable after ${recoveredAfter} ms`)
  }
}

/** Most of the time is spent waiting, so it is spent together. */
suite('under load, loses nothing and floods nothing', { skip: needsDebian, concurrency: 4 }, () => {
  test(`while the table is locked for ${SECONDS} s`, async (t) => {
    const server = await PostgresServer.start(t)
    const load = await Load.start(t, server.url, [server])
    const holder = await server.connect(t)
    await holder.query('BEGIN; LOCK TABLE plant_store_plants')
    await sleep(SECONDS * 1000)
    await holder.query('ROLLBACK')
    await load.assertSound(t, await load.recovery())
  })

  test(`while its network lets nothing through for ${SECONDS * 0.75} s`, async (t) => {
    const server = await PostgresServer.start(t)
    const proxy = await openTcpProxy({ host: '127.0.0.1', port: server.port })
    t.after(() => proxy.close())
    const load = await Load.start(t, `postgres://plants@127.0.0.1:${proxy.port}/postgres`, [server])
    proxy.block()
    await sleep(SECONDS * 750)
    proxy.unblock()
    await load.assertSound(t, await load.recovery())
  })

  test(`while its synchronous standby is gone for ${SECONDS / 2} s`, async (t) => {
    const primary = await PostgresServer.start(t)
    const standby = await PostgresServer.startStandby(t, primary, 'standby')
    await primary.set('synchronous_standby_names', 'standby')
    const load = await Load.start(t, primary.url, [primary])
    await standby.stop('immediate')
    await sleep(SECONDS * 500)
    await standby.begin()
    await primary.until(`SELECT 1 FROM pg_stat_replication WHERE sync_state = 'sync'`)
    await load.assertSound(t, await load.recovery())
  })

  test('while its primary dies and its standby is promoted, and comes back as a standby', async (t) => {
    const first = await PostgresServer.start(t)
    const second = await PostgresServer.startStandby(t, first, 'second')
    await first.set('synchronous_standby_names', 'second')
    const port = await startHaproxy(t, [first, second])
    const load = await Load.start(t, `postgres://plants@127.0.0.1:${port}/postgres`, [first, second])
    await first.stop('immediate')
    await sleep(1000)
    await second.control('promote', '--wait')
    await answering(port)
    const recoveredAfter = await load.recovery()
    await first.follow(second)
    await load.proceed()
    assert.deepEqual(await first.query('SELECT pg_is_in_recovery() AS standby'), [{ standby: true }])
    await load.assertSound(t, recoveredAfter)
  })
})
