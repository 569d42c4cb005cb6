import { type Case, TOKEN, buildWriteRequest } from './cases.ts'
import type { Contestant } from './contestants.ts'
import type { TemporaryDatabase } from './databases.ts'
import { Client, type Load, type Outcome } from './load.ts'
import { ServerProcess } from './server-process.ts'
import { mergeSorted, percentile } from './report/statistics.ts'
import type { RoundMetrics } from './report/table.ts'

export interface Settings {
  readonly connections: number
  readonly pipelining: number
  /** How long each contestant is measured in a round, in seconds. */
  readonly duration: number
  /** The folder for the CPU profiles of the servers. */
  readonly profileDirectory: string | undefined
}

/** The result of one contestant in one round. */
export interface Measurement extends RoundMetrics {
  readonly requestsPerSecond: number
  /** Latency in milliseconds, from sending a request to the last byte of its response. */
  readonly p50: number
  readonly p90: number
  readonly p99: number
  readonly p999: number
  readonly max: number
  /** User and system CPU time of the server process per request, in microseconds. */
  readonly cpu: number
}

/**
 * Starts a new process for each contestant, creates its plants and warms it up. Then the contestants take turns in
 * short slices of time, so that other load on the machine affects all of them equally.
 * @returns the measurements in the order of the contestants
 * @throws Error if a contestant fails; if a response is wrong, the `cause` of the error is an UnexpectedResponseError
 */
export async function measureRound(
  theCase: Case,
  contestants: readonly Contestant[],
  settings: Settings,
): Promise<Measurement[]> {
  const runs = contestants.map((contestant, index) => new ContestantRun(theCase, contestant, index, settings))
  try {
    for (const run of runs) await run.prepare()
    const slices = Math.max(1, Math.round(settings.duration / SLICE_SECONDS))
    for (let slice = 0; slice < slices; slice++) {
      for (const run of orderForSlice(runs, slice)) await run.measure(1 / slices)
    }
    return runs.map((run) => run.result())
  } finally {
    for (const run of runs) await run.close()
  }
}

const SLICE_SECONDS = 0.25

/**
 * Returns the order in which the contestants run in a slice. It varies, so that no contestant always runs right after
 * the same other contestant.
 */
export function orderForSlice<Item>(contestants: readonly Item[], slice: number): Item[] {
  const first = (slice >> 1) % contestants.length
  const order = [...contestants.slice(first), ...contestants.slice(0, first)]
  return slice % 2 === 0 ? order : order.reverse()
}

/** The duration of the warm-up in seconds: long enough that only compiled code is measured. */
const WARM_UP_SECONDS = 2

/** A phase ends when either limit is reached. */
type PhaseLimits = Required<Pick<Load, 'requests' | 'seconds'>>

/** Returns the limits of the three phases: the first request, the warm-up and the measurement. */
function phaseLimits(
  { seedCount, connections }: Case,
  { duration }: Settings,
): [first: PhaseLimits, warmUp: PhaseLimits, measured: PhaseLimits] {
  const perSecond = typeof seedCount === 'number' ? Infinity : seedCount.perSecond
  const phase = (seconds: number): PhaseLimits => ({ requests: Math.ceil(perSecond * seconds), seconds })
  // A single connection sends only a tenth as many requests per second, so it needs a longer warm-up.
  const warmUp = connections === 1 ? 2 * duration : WARM_UP_SECONDS
  return [{ requests: 1, seconds: Infinity }, phase(warmUp), phase(duration)]
}

/** Returns the settings that are passed to the default export of the contestant's file. */
export function contestantSettingsOf({ expectedResponse: { status, body } }: Case, { options }: Contestant): object {
  const text = body.toString()
  const unauthorizedBody = status === 401 ? (JSON.parse(text) as unknown) : undefined
  return { token: TOKEN, unauthorizedBody, response: { status, body: text }, options }
}

/** One contestant in one round. */
class ContestantRun {
  readonly #case: Case
  readonly #contestant: Contestant
  readonly #index: number
  readonly #settings: Settings
  #database: TemporaryDatabase | undefined
  #server: ServerProcess | undefined
  #client: Client | undefined
  #writer: Client | undefined
  #sentRequests = 0
  #writtenRequests = 0
  readonly #totals = { responseCount: 0, seconds: 0, cpu: 0, latencies: [] as Float64Array[] }

  /** @param index a number that is unique among the contestants of a round */
  constructor(theCase: Case, contestant: Contestant, index: number, settings: Settings) {
    this.#case = { ...theCase, ...contestant.overrides }
    this.#contestant = contestant
    this.#index = index
    this.#settings = settings
  }

  /** Starts the server process, creates the plants, sends the first request and warms up. */
  async prepare(): Promise<void> {
    await this.#withErrorContext(async () => {
      const { database, connections = this.#settings.connections } = this.#case
      const { file, hasConcurrentWrites } = this.#contestant
      this.#database = await database?.create(this.#index)
      const contestantSettings = contestantSettingsOf(this.#case, this.#contestant)
      const location = this.#database?.location
      this.#server = await ServerProcess.start(
        file,
        { ...contestantSettings, location },
        this.#settings.profileDirectory,
      )
      await this.#seed(this.#server)
      this.#client = await Client.connect(this.#server.port, connections)
      this.#writer = await Client.connect(this.#server.port, hasConcurrentWrites ? connections : 0)
      const [first, warmUp] = phaseLimits(this.#case, this.#settings)
      await this.#send(first)
      await this.#send(warmUp)
    })
  }

  /** Measures one slice, which lasts the given fraction of the duration. */
  async measure(fraction: number): Promise<void> {
    await this.#withErrorContext(async () => {
      const { requests, seconds } = phaseLimits(this.#case, this.#settings)[2]
      const before = await this.#server!.usage()
      const outcome = await this.#send({ requests: Math.floor(requests * fraction), seconds: seconds * fraction })
      const after = await this.#server!.usage()
      this.#totals.responseCount += outcome.responseCount
      this.#totals.seconds += outcome.seconds
      this.#totals.cpu += after.cpu - before.cpu
      this.#totals.latencies.push(outcome.latencies)
    })
  }

  result(): Measurement {
    const { responseCount, seconds, cpu } = this.#totals
    const latencies = mergeSorted(this.#totals.latencies)
    return {
      requestsPerSecond: responseCount / seconds,
      p50: percentile(latencies, 50),
      p90: percentile(latencies, 90),
      p99: percentile(latencies, 99),
      p999: percentile(latencies, 99.9),
      max: percentile(latencies, 100),
      cpu: cpu / responseCount,
    }
  }

  async close(): Promise<void> {
    this.#client?.close()
    this.#writer?.close()
    await this.#server?.stop()
    await this.#database?.remove()
  }

  async #seed({ port }: ServerProcess): Promise<void> {
    if (this.#contestant.isConstant) return
    const { seedCount, seedRequest, database } = this.#case
    const totalRequests = phaseLimits(this.#case, this.#settings).reduce((sum, { requests }) => sum + requests, 0)
    const requests = typeof seedCount === 'number' ? seedCount : totalRequests
    // Contestants with a Map list plants in insertion order, so their plants must be created in order, over one
    // connection. Databases sort the plants themselves, and would be slow over one connection.
    const client = await Client.connect(port, database === undefined ? 1 : 64)
    try {
      await client.send({ request: seedRequest, requests, expectedResponse: { status: 200 }, pipelining: 64 })
    } finally {
      client.close()
    }
  }

  async #send({ requests, seconds }: PhaseLimits): Promise<Outcome> {
    const { request, expectedResponse, database } = this.#case
    const { pipelining } = this.#settings
    // A busy-waiting client would take the CPU core that the database needs.
    const spins = database === undefined
    const [sent, written] = [this.#sentRequests, this.#writtenRequests]
    const [outcome, writerOutcome] = await Promise.all([
      this.#client!.send({ request: (n) => request(sent + n), expectedResponse, pipelining, spins, requests, seconds }),
      this.#writer!.send({
        request: (n) => buildWriteRequest(written + n),
        expectedResponse: { status: 200 },
        requests,
        seconds,
      }),
    ])
    this.#sentRequests += outcome.responseCount
    this.#writtenRequests += writerOutcome.responseCount
    return outcome
  }

  async #withErrorContext(callback: () => Promise<void>): Promise<void> {
    try {
      await callback()
    } catch (error) {
      throw new Error(`The case ${this.#case.name} failed with ${this.#contestant.name}.`, { cause: error })
    }
  }
}
