// Repeatedly fails over a Patroni cluster (configured as in docs/postgres-high-availability.md) under load. Run it
// manually, on Debian:
//   apt-get install postgresql patroni etcd-server haproxy
//   npm run failover -- --times 10 --kinds crash,freeze
import { parseArgs } from 'node:util'
import { setTimeout as sleep } from 'node:timers/promises'
import { runWithCleanup } from '../support/child-process.ts'
import { trackPeakSessions } from '../support/wire/debian-servers.ts'
import { PatroniCluster, type ClusterNode } from '../support/database/servers/patroni-cluster.ts'
import { Program } from '../support/program/program.ts'
import { Workload } from '../support/database/histories/workload.ts'

/** How to make the primary fail, and how to recover its machine. */
interface FailureKind {
  readonly fail: (machine: ClusterNode, cluster: PatroniCluster) => unknown
  readonly recover?: (machine: ClusterNode) => void
}

const FAILURE_KINDS: Readonly<Record<string, FailureKind>> = {
  /** A planned switchover, for example for an upgrade. */
  switchover: { fail: (machine, cluster) => cluster.switchover(machine) },
  /** The PostgreSQL process dies. */
  crash: { fail: (machine) => machine.killPostgres() },
  /** The whole machine dies. */
  death: { fail: (machine) => machine.kill(), recover: (machine) => machine.start() },
  /** The machine hangs until its watchdog resets it. */
  freeze: { fail: freezeUntilWatchdog, recover: (machine) => machine.start() },
  /** The machine is disconnected from the other machines, but not from the program. */
  isolation: { fail: (machine) => machine.etcdProxy.block(), recover: (machine) => machine.etcdProxy.unblock() },
  /**
   * A machine without a watchdog hangs, and resumes when there is another primary. Before version 3.0.3, Patroni may
   * fail back to that machine.
   */
  wake: { fail: (machine) => machine.freeze(), recover: (machine) => machine.unfreeze() },
}

/** When the watchdog resets a machine with an unresponsive Patroni, in ms: the `ttl` minus a margin of 5 s. */
const WATCHDOG_MS = 15_000

/** Freezes a machine, and kills it when its watchdog would. */
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

/** Checks progress every 20 ms. The returned function returns the longest time without an acknowledged write, in s. */
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
