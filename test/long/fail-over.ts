// Has a cluster of Patroni fail over again and again under load, as docs/postgres.md configures it. On Debian, by hand:
//   apt-get install postgresql patroni etcd-server haproxy
//   npm run fail-over -- --times 10 --kinds crash,freeze
import { parseArgs } from 'node:util'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Scope } from '../support/child.ts'
import { SessionCount } from '../support/wire/debian-servers.ts'
import { PatroniCluster, type Machine } from '../support/database/servers/patroni-cluster.ts'
import { Program } from '../support/program/program.ts'
import { Workload } from '../support/database/histories/workload.ts'

/** How a primary is lost, and what brings its machine back. */
interface Kind {
  readonly lose: (machine: Machine, cluster: PatroniCluster) => unknown
  readonly mend?: (machine: Machine) => void
}

const KINDS: Readonly<Record<string, Kind>> = {
  /** Planned, as for an upgrade. */
  switchover: { lose: (machine, cluster) => cluster.switchOver(machine) },
  /** The server's process dies. */
  crash: { lose: (machine) => machine.killServer() },
  /** All of the machine dies. */
  death: { lose: (machine) => machine.kill(), mend: (machine) => machine.start() },
  /** The machine hangs. */
  freeze: { lose: freeze, mend: (machine) => machine.start() },
  /** The machine loses the others, but the service does not lose it. */
  isolation: { lose: (machine) => machine.isolate(), mend: (machine) => machine.join() },
  /** The machine hangs, has no watchdog, and wakes when there is another primary. Patroni before 3.0.3 may go back to it. */
  wake: { lose: (machine) => machine.freeze(), mend: (machine) => machine.thaw() },
}

/** When the watchdog resets a machine whose Patroni is silent, in milliseconds: the `ttl` less a margin of 5 s. */
const WATCHDOG_MS = 15_000

/** Does what a watchdog would do. */
async function freeze(machine: Machine): Promise<void> {
  machine.freeze()
  await sleep(WATCHDOG_MS)
  machine.kill()
}

const CLIENTS = 64
const POOL_SIZE = 10

const { values } = parseArgs({
  options: {
    times: { type: 'string', default: '10' },
    kinds: { type: 'string', default: 'switchover,crash,death,freeze,isolation' },
  },
})

/** Until nothing has been acknowledged for so long, the longest time is looked for, in milliseconds. */
const LOOK_MS = 20

/** Notes the longest time in which a workload has nothing acknowledged. */
class Outage {
  longestMs = 0
  readonly #timer: NodeJS.Timeout

  constructor(workload: Workload) {
    let [acknowledged, since] = [workload.acknowledged, performance.now()]
    this.#timer = setInterval(() => {
      this.longestMs = Math.max(this.longestMs, performance.now() - since)
      if (workload.acknowledged > acknowledged) [acknowledged, since] = [workload.acknowledged, performance.now()]
    }, LOOK_MS)
  }

  stop(): void {
    clearInterval(this.#timer)
  }
}

const ends: (() => unknown)[] = []
const scope: Scope = { after: (end) => ends.unshift(end) }

let ending: Promise<void> | undefined

/** Ends all servers, once. */
function endAll(): Promise<void> {
  ending ??= (async () => {
    for (const end of ends) await end()
  })()
  return ending
}

function breakOff(error: unknown): void {
  console.error(error)
  void endAll().then(() => process.exit(1))
}
process.once('SIGINT', breakOff).on('unhandledRejection', breakOff)

async function failOver(cluster: PatroniCluster, programs: readonly Program[], { lose, mend }: Kind): Promise<Report> {
  const primary = await cluster.healthy()
  await primary.query('TRUNCATE plant_store_plants')
  const counts = cluster.machines.map((machine) => new SessionCount(machine))
  const workload = new Workload()
  for (const program of programs) workload.start(program, CLIENTS / programs.length)
  await workload.progress(200)

  const outage = new Outage(workload)
  await lose(primary, cluster)
  await cluster.promoted(primary)
  await workload.progress(200)
  outage.stop()
  mend?.(primary)
  await cluster.healthy()
  await workload.progress(200)
  const sessions = await Promise.all(counts.map((count) => count.stop()))
  await workload.finish(programs[0]!)
  const { acknowledged, refused, unknown } = workload
  return { seconds: outage.longestMs / 1000, acknowledged, refused, unknown, sessions: Math.max(...sessions) }
}

interface Report {
  readonly seconds: number
  readonly acknowledged: number
  readonly refused: number
  readonly unknown: number
  readonly sessions: number
}

try {
  const cluster = await PatroniCluster.start(scope)
  const environment = { PLANT_STORE_URL: cluster.url, PLANT_STORE_KEEP_ALIVE_TIMEOUT_MS: '60000' }
  const programs = [await Program.start(environment), await Program.start(environment)]
  for (const program of programs) scope.after(() => program.end())
  await Promise.all(programs.map((program) => program.ready()))

  for (const name of values.kinds.split(',')) {
    const reports: Report[] = []
    for (let round = 1; round <= Number(values.times); round++) {
      const report = await failOver(cluster, programs, KINDS[name]!)
      console.log(`${name} ${round}:`, report)
      if (report.sessions > POOL_SIZE * programs.length) process.exitCode = 1
      reports.push(report)
      await sleep(1000)
    }
    const sum = (of: (report: Report) => number): number => reports.reduce((total, report) => total + of(report), 0)
    const times = reports.map(({ seconds }) => seconds).sort((a, b) => a - b)
    console.log(
      `${name}: ${reports.length} times, ${times.at(times.length >> 1)!.toFixed(1)} s, at most ${times.at(-1)!.toFixed(1)} s; ` +
        `${sum((of) => of.acknowledged)} acknowledged, none lost; ${sum((of) => of.refused)} answered 50300, ` +
        `${sum((of) => of.unknown)} answered 50301; ${Math.max(...reports.map((of) => of.sessions))} sessions at most`,
    )
  }
} finally {
  await endAll()
}
