import { fork, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { performance } from 'node:perf_hooks'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { seedRequest, TOKEN, type Case } from './cases.ts'
import type { Contestant } from './contestants.ts'
import { Load } from './load.ts'

export interface Settings {
  readonly connections: number
  /** The number of plants that exist before the run. */
  readonly plants: number
  /** How long each contestant is measured in a round, in seconds. */
  readonly seconds: number
}

/** The result of one contestant in one round. */
export interface Measurement {
  /** User and system CPU time of the server process per request, in microseconds. */
  readonly cpu: number
  readonly requestsPerSecond: number
  readonly latencies: readonly number[]
}

const SLICE_SECONDS = 0.25
/** Long enough that V8 has compiled what is measured. */
const WARM_UP_SECONDS = 1
/** More than any contestant deletes in a second. */
const MAX_DELETES_PER_SECOND = 80_000

/**
 * Starts a new process for each contestant, and creates its plants. Then the contestants take turns in short slices of
 * time, so that other load on the machine affects all of them.
 * @returns the measurements, in the order of the contestants
 * @throws Error if a contestant fails, or sends a response that isn't as expected
 */
export async function measureRound(
  theCase: Case,
  contestants: readonly Contestant[],
  settings: Settings,
): Promise<Measurement[]> {
  const { connections, seconds } = settings
  const servers: ServerProcess[] = []
  try {
    for (const contestant of contestants) {
      const server = new ServerProcess(contestant)
      servers.push(server)
      await server.listening()
      const deletes = theCase.deletesPlants === true ? MAX_DELETES_PER_SECOND * (WARM_UP_SECONDS + seconds) : 0
      await server.seed(settings.plants + deletes)
    }
    for (const server of servers) await server.connect(connections)
    await takeTurns(servers, WARM_UP_SECONDS, (server) => server.run(theCase))
    for (const server of servers) server.reset()
    await takeTurns(servers, seconds, (server) => server.run(theCase))
    return servers.map((server) => server.result())
  } finally {
    for (const server of servers) await server.stop()
  }
}

/** Runs all servers in turn. The order is reversed every time, so that none always runs after the same other one. */
async function takeTurns(
  servers: readonly ServerProcess[],
  seconds: number,
  run: (server: ServerProcess) => Promise<void>,
): Promise<void> {
  for (let elapsed = 0, isReversed = false; elapsed < seconds; elapsed += SLICE_SECONDS, isReversed = !isReversed) {
    for (const server of isReversed ? servers.toReversed() : servers) await run(server)
  }
}

const REPORT_USAGE = fileURLToPath(new URL('report-usage.js', import.meta.url))

class ServerProcess {
  readonly #contestant: Contestant
  readonly #child: ChildProcess
  readonly #exited: Promise<never>
  #port = 0
  #load: Load | undefined
  #cpu = 0
  #seconds = 0
  #firstSample = 0

  constructor(contestant: Contestant) {
    const { name, file, dist } = contestant
    this.#contestant = contestant
    this.#child = fork(file, [], {
      // V8 would otherwise shrink the young generation while the other contestants run, or enlarge it while the plants
      // are created, which changes the cost of garbage collection by chance.
      execArgv: ['--import', REPORT_USAGE, '--min-semi-space-size=16', '--max-semi-space-size=16'],
      env: {
        ...process.env,
        NODE_ENV: 'production',
        PORT: '0',
        BENCH_DIST: dist,
        BENCH_TOKEN: TOKEN,
        PLANT_STORE_TOKENS: `bench:${TOKEN}`,
      },
      stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
    })
    let output = ''
    this.#child.stderr!.setEncoding('utf8').on('data', (text: string) => (output += text))
    this.#exited = once(this.#child, 'exit').then(([status]) => {
      throw new Error(`${name} exited with ${String(status)}: ${output}`)
    })
    this.#exited.catch(() => undefined)
  }

  async listening(): Promise<void> {
    const lines = createInterface(this.#child.stdout!)
    const [line] = (await Promise.race([once(lines, 'line'), this.#exited])) as [string]
    this.#port = Number(/:(\d+)$/.exec(line)?.[1])
  }

  async seed(count: number): Promise<void> {
    // One connection, because a Map lists plants in the order in which they were created.
    const load = await Load.open(this.#port, 1)
    await load.send({ request: seedRequest, status: 200 }, { requests: count, pipelining: 64 })
    load.close()
  }

  async connect(connections: number): Promise<void> {
    this.#load = await Load.open(this.#port, connections)
  }

  /** Sends requests for one slice. */
  async run(theCase: Case): Promise<void> {
    const [start, cpu] = [performance.now(), await this.#usage()]
    try {
      await this.#load!.send(theCase, { seconds: SLICE_SECONDS })
    } catch (error) {
      throw new Error(`${this.#contestant.name} failed in the case "${theCase.name}"`, { cause: error })
    }
    this.#cpu += (await this.#usage()) - cpu
    this.#seconds += (performance.now() - start) / 1000
  }

  /** Forgets the slices so far. */
  reset(): void {
    this.#cpu = 0
    this.#seconds = 0
    this.#firstSample = this.#load!.latencies.length
  }

  result(): Measurement {
    const latencies = this.#load!.latencies.slice(this.#firstSample)
    return { cpu: this.#cpu / latencies.length, requestsPerSecond: latencies.length / this.#seconds, latencies }
  }

  /** Returns the CPU time since the start, in microseconds. */
  async #usage(): Promise<number> {
    const answer = once(this.#child, 'message')
    this.#child.send('usage')
    const [{ user, system }] = (await Promise.race([answer, this.#exited])) as [NodeJS.CpuUsage]
    return user + system
  }

  async stop(): Promise<void> {
    this.#load?.close()
    if (this.#child.connected) this.#child.disconnect()
    await this.#exited.catch(() => undefined)
  }
}
