import { type Case, TOKEN, write } from './cases.ts'
import type { Contestant } from './contestants.ts'
import type { TemporaryDatabase } from './databases.ts'
import { Client, type Load, type Outcome } from './load.ts'
import { ServerProcess } from './server-process.ts'
import { merge, percentile } from './report/statistics.ts'
import type { Measured } from './report/table.ts'

export interface Settings {
  readonly connections: number
  readonly pipelining: number
  /** Seconds that are measured of each contestant in a round. */
  readonly duration: number
  /** A folder for CPU profiles of the servers. */
  readonly profiles: string | undefined
}

/** What one contestant did in one round. */
export interface Measurement extends Measured {
  readonly requestsPerSecond: number
  /** Milliseconds from sending a request to the end of its answer. */
  readonly p50: number
  readonly p90: number
  readonly p99: number
  readonly p999: number
  readonly max: number
  /** Microseconds of CPU time of the server process, user and system, for each request. */
  readonly cpu: number
}

/**
 * Starts the contestants afresh, gives each its plants, asks it once and warms it up. Then it measures them side by
 * side: all have a short slice of time in turn, again and again, so that what the machine does meanwhile weighs on all
 * of them.
 * @returns a measurement of each, in the same order
 * @throws Error with the cause if a contestant fails: a WrongAnswerError if an answer is not the one of the case
 */
export async function measureRound(
  theCase: Case,
  contestants: readonly Contestant[],
  settings: Settings,
): Promise<Measurement[]> {
  const trials = contestants.map((contestant, place) => new Trial(theCase, contestant, place, settings))
  try {
    for (const trial of trials) await trial.prepare()
    const slices = Math.max(1, Math.round(settings.duration / SLICE_SECONDS))
    for (let slice = 0; slice < slices; slice++) {
      for (const trial of inOrder(trials, slice)) await trial.measure(1 / slices)
    }
    return trials.map((trial) => trial.measurement())
  } finally {
    for (const trial of trials) await trial.end()
  }
}

const SLICE_SECONDS = 0.25

/** The contestants in the order of a slice: nobody is always the first, or always comes after the same one. */
export function inOrder<Contestant>(contestants: readonly Contestant[], slice: number): Contestant[] {
  const first = (slice >> 1) % contestants.length
  const order = [...contestants.slice(first), ...contestants.slice(0, first)]
  return slice % 2 === 0 ? order : order.reverse()
}

/** Seconds before anything is counted: what is measured is code that has been compiled. */
const WARM_UP_SECONDS = 2

/** Ends after so many requests, or after so long. */
type Phase = Required<Pick<Load, 'requests' | 'seconds'>>

/** The first request, the warm-up, and what is measured. */
function phases({ seeds, connections }: Case, { duration }: Settings): [first: Phase, warmUp: Phase, measured: Phase] {
  const perSecond = typeof seeds === 'number' ? Infinity : seeds.perSecond
  const phase = (seconds: number): Phase => ({ requests: Math.ceil(perSecond * seconds), seconds })
  // One connection asks a tenth as much.
  const warmUp = connections === 1 ? 2 * duration : WARM_UP_SECONDS
  return [{ requests: 1, seconds: Infinity }, phase(warmUp), phase(duration)]
}

/** What a contestant is told of a case. */
export function settingsOf({ answer: { status, body } }: Case, { options }: Contestant): object {
  const text = body.toString()
  const refusal = status === 401 ? (JSON.parse(text) as unknown) : undefined
  return { token: TOKEN, refusal, answer: { status, body: text }, options }
}

/** One contestant in one round. */
class Trial {
  readonly #case: Case
  readonly #contestant: Contestant
  readonly #place: number
  readonly #settings: Settings
  #database: TemporaryDatabase | undefined
  #server: ServerProcess | undefined
  #client: Client | undefined
  #writer: Client | undefined
  #sent = 0
  #written = 0
  readonly #measured = { answered: 0, seconds: 0, cpu: 0, latencies: [] as Float64Array[] }

  /** @param place its number among those that run beside it */
  constructor(theCase: Case, contestant: Contestant, place: number, settings: Settings) {
    this.#case = { ...theCase, ...contestant.instead }
    this.#contestant = contestant
    this.#place = place
    this.#settings = settings
  }

  /** Starts it, gives it its plants, asks once, and warms it up. */
  async prepare(): Promise<void> {
    await this.#blame(async () => {
      const { database, connections = this.#settings.connections } = this.#case
      const { file, writes } = this.#contestant
      this.#database = await database?.create(this.#place)
      const given = settingsOf(this.#case, this.#contestant)
      const location = this.#database?.location
      this.#server = await ServerProcess.start(file, { ...given, location }, this.#settings.profiles)
      await this.#seed(this.#server)
      this.#client = await Client.connect(this.#server.port, connections)
      this.#writer = await Client.connect(this.#server.port, writes ? connections : 0)
      const [first, warmUp] = phases(this.#case, this.#settings)
      await this.#send(first)
      await this.#send(warmUp)
    })
  }

  /** Measures a part of what is to be measured. */
  async measure(part: number): Promise<void> {
    await this.#blame(async () => {
      const { requests, seconds } = phases(this.#case, this.#settings)[2]
      const before = await this.#server!.usage()
      const outcome = await this.#send({ requests: Math.floor(requests * part), seconds: seconds * part })
      const after = await this.#server!.usage()
      this.#measured.answered += outcome.answered
      this.#measured.seconds += outcome.seconds
      this.#measured.cpu += after.cpu - before.cpu
      this.#measured.latencies.push(outcome.latencies)
    })
  }

  measurement(): Measurement {
    const { answered, seconds, cpu } = this.#measured
    const latencies = merge(this.#measured.latencies)
    return {
      requestsPerSecond: answered / seconds,
      p50: percentile(latencies, 50),
      p90: percentile(latencies, 90),
      p99: percentile(latencies, 99),
      p999: percentile(latencies, 99.9),
      max: percentile(latencies, 100),
      cpu: cpu / answered,
    }
  }

  async end(): Promise<void> {
    this.#client?.close()
    this.#writer?.close()
    await this.#server?.stop()
    await this.#database?.remove()
  }

  async #seed({ port }: ServerProcess): Promise<void> {
    if (this.#contestant.constant) return
    const { seeds, seed, database } = this.#case
    const each = phases(this.#case, this.#settings).reduce((sum, { requests }) => sum + requests, 0)
    const requests = typeof seeds === 'number' ? seeds : each
    // On one connection they arrive in order: a Map lists plants as they came. A database does not, and would be
    // slow to take them one after the other.
    const client = await Client.connect(port, database === undefined ? 1 : 64)
    try {
      await client.send({ request: seed, requests, answer: { status: 200 }, pipelining: 64 })
    } finally {
      client.close()
    }
  }

  async #send({ requests, seconds }: Phase): Promise<Outcome> {
    const { request, answer, database } = this.#case
    const { pipelining } = this.#settings
    // A database needs the core that a spinning client would take.
    const spins = database === undefined
    const [sent, written] = [this.#sent, this.#written]
    const [outcome, writing] = await Promise.all([
      this.#client!.send({ request: (n) => request(sent + n), answer, pipelining, spins, requests, seconds }),
      this.#writer!.send({ request: (n) => write(written + n), answer: { status: 200 }, requests, seconds }),
    ])
    this.#sent += outcome.answered
    this.#written += writing.answered
    return outcome
  }

  async #blame(step: () => Promise<void>): Promise<void> {
    try {
      await step()
    } catch (error) {
      throw new Error(`${this.#contestant.name} failed ${this.#case.name}`, { cause: error })
    }
  }
}
