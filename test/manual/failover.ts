// Has a cluster of Patroni fail over again and again under load, as docs/postgres-high-availability.md configures it. On Debian, by hand:
//   apt-get install postgresql patroni etcd-server haproxy
//   npm run failover -- --times 10 --kinds crash,freeze
import { parseArgs } from 'node:util'
import { setTimeout as sleep } from 'node:timers/promises'
import { runWithCleanup } from '../support/child-process.ts'
import { trackPeakSessions } from '../support/wire/debian-servers.ts'
import { PatroniCluster, type ClusterNode } from '../support/database/servers/patroni-cluster.ts'
import { Program } from '../support/program/program.ts'
import { Workload } from '../support/database/histories/workload.ts'

/** How a primary is lost, and what brings its machine back. */
interface FailureKind {
  readonly fail: (machine: ClusterNode, cluster: PatroniCluster) => unknown
  readonly recover?: (machine: ClusterNode) => void
}

const FAILURE_KINDS: Readonly<Record<string, FailureKind>> = {
  /** Planned, as for an upgrade. */
  switchover: { fail: (machine, cluster) => cluster.switchover(machine) },
  /** The server's process dies. */
  crash: { fail: (machine) => machine.killPostgres() },
  /** All of the machine dies. */
  death: { fail: (machine) => machine.kill(), recover: (machine) => machine.start() },
  /** The machine hangs. */
  freeze: { fail: freezeUntilWatchdog, recover: (machine) => machine.start() },
  /** The machine loses the others, but the service does not lose it. */
  isolation: { fail: (machine) => machine.etcdProxy.block(), recover: (machine) => machine.etcdProxy.unblock() },
  /** The machine hangs, has no watchdog, and wakes when there is another primary. Patroni before 3.0.3 may go back to it. */
  wake: { fail: (machine) => machine.freeze(), recover: (machine) => machine.unfreeze() },
}

/** When the watchdog resets a machine whose Patroni is silent, in milliseconds: the `ttl` less a margin of 5 s. */
const WATCHDOG_MS = 15_000

/** Does what a watchdog would do. */
async function freezeUntilWatchdog(machine: ClusterNode): Promise<void> {
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
function trackLongestOutage(workload: Workload): () => number {
  let [acknowledged, lastProgressAt, longestMs] = [workload.acknowledged, performance.now(), 0]
  const timer = setInterval(() => {
    longestMs = Math.max(longestMs, performance.now() - lastProgressAt)
    if (workload.acknowledged > acknowledged)
      [acknowledged, lastProgressAt] = [workload.acknowledged, performance.now()]
  }, 20)
  return () => {
    clearInterval(timer)
    return longestMs / 1000
  }
}

async function runFailover(
  cluster: PatroniCluster,
  programs: readonly Program[],
  { fail: lose, recover: mend }: FailureKind,
): Promise<Readonly<Record<string, number>>> {
  const primary = await cluster.waitUntilHealthy()
  await primary.query('TRUNCATE plant_store_plants')
  const stopTracking = cluster.nodes.map(trackPeakSessions)
  const workload = new Workload()
  for (const program of programs) workload.start(program, CLIENTS / programs.length)
  await workload.waitForProgress(200)

  const stopOutageTracking = trackLongestOutage(workload)
  await lose(primary, cluster)
  await cluster.waitForNewPrimary(primary)
  await workload.waitForProgress(200)
  const seconds = stopOutageTracking()
  mend?.(primary)
  await cluster.waitUntilHealthy()
  await workload.waitForProgress(200)
  const sessions = Math.max(...(await Promise.all(stopTracking.map((stop) => stop()))))
  await workload.stopAndVerify(programs[0]!)
  if (sessions > POOL_SIZE * programs.length) process.exitCode = 1
  const { acknowledged, unavailable: refused, unknownOutcomes: unknown } = workload
  return { seconds, acknowledged, refused, unknown, sessions }
}

await runWithCleanup(async (scope) => {
  const cluster = await PatroniCluster.start(scope)
  const environment = { PLANT_STORE_URL: cluster.url, PLANT_STORE_KEEP_ALIVE_TIMEOUT_MS: '60000' }
  const programs = [await Program.start(environment), await Program.start(environment)]
  for (const program of programs) scope.after(() => program.stop())
  await Promise.all(programs.map((program) => program.waitUntilReady()))

  const reports: object[] = []
  for (const kind of values.kinds.split(',')) {
    for (let iteration = 1; iteration <= Number(values.times); iteration++) {
      reports.push({ kind, ...(await runFailover(cluster, programs, FAILURE_KINDS[kind]!)) })
      console.log(reports.at(-1))
      await sleep(1000)
    }
  }
  console.table(reports)
})
