// Has a cluster of Patroni fail over again and again under load, as docs/postgres-servers.md configures it. On Debian, by hand:
//   apt-get install postgresql patroni etcd-server haproxy
//   npm run fail-over -- --times 10 --kinds crash,freeze
import { parseArgs } from 'node:util'
import { setTimeout as sleep } from 'node:timers/promises'
import { runByHand } from '../support/child.ts'
import { countSessions } from '../support/wire/debian-servers.ts'
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
  isolation: { lose: (machine) => machine.etcd.block(), mend: (machine) => machine.etcd.unblock() },
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

/** Looks from now on, each 20 ms; gives the longest time in which nothing was acknowledged, in seconds. */
function watchOutage(workload: Workload): () => number {
  let [acknowledged, since, longestMs] = [workload.acknowledged, performance.now(), 0]
  const timer = setInterval(() => {
    longestMs = Math.max(longestMs, performance.now() - since)
    if (workload.acknowledged > acknowledged) [acknowledged, since] = [workload.acknowledged, performance.now()]
  }, 20)
  return () => {
    clearInterval(timer)
    return longestMs / 1000
  }
}

async function failOver(
  cluster: PatroniCluster,
  programs: readonly Program[],
  { lose, mend }: Kind,
): Promise<Readonly<Record<string, number>>> {
  const primary = await cluster.healthy()
  await primary.query('TRUNCATE plant_store_plants')
  const counts = cluster.machines.map(countSessions)
  const workload = new Workload()
  for (const program of programs) workload.start(program, CLIENTS / programs.length)
  await workload.progress(200)

  const endOutage = watchOutage(workload)
  await lose(primary, cluster)
  await cluster.promoted(primary)
  await workload.progress(200)
  const seconds = endOutage()
  mend?.(primary)
  await cluster.healthy()
  await workload.progress(200)
  const sessions = Math.max(...(await Promise.all(counts.map((stop) => stop()))))
  await workload.finish(programs[0]!)
  if (sessions > POOL_SIZE * programs.length) process.exitCode = 1
  const { acknowledged, refused, unknown } = workload
  return { seconds, acknowledged, refused, unknown, sessions }
}

await runByHand(async (scope) => {
  const cluster = await PatroniCluster.start(scope)
  const environment = { PLANT_STORE_URL: cluster.url, PLANT_STORE_KEEP_ALIVE_TIMEOUT_MS: '60000' }
  const programs = [await Program.start(environment), await Program.start(environment)]
  for (const program of programs) scope.after(() => program.end())
  await Promise.all(programs.map((program) => program.ready()))

  const reports: object[] = []
  for (const kind of values.kinds.split(',')) {
    for (let round = 1; round <= Number(values.times); round++) {
      reports.push({ kind, ...(await failOver(cluster, programs, KINDS[kind]!)) })
      console.log(reports.at(-1))
      await sleep(1000)
    }
  }
  console.table(reports)
})
