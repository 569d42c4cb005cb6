import { type Case, TOKEN, write } from './cases.ts'
import type { Contestant } from './contestants.ts'
import { Client, type Load, type Outcome } from './load.ts'
import { ServerProcess } from './server-process.ts'
import { percentile } from './statistics.ts'

export interface Settings {
  readonly connections: number
  readonly pipelining: number
  /** Seconds that are measured. */
  readonly duration: number
  /** A folder for CPU profiles of the servers. */
  readonly profiles: string | undefined
}

/** One run of one contestant. */
export interface Measurement {
  readonly requestsPerSecond: number
  /** Milliseconds from sending a request to the end of its answer. */
  readonly p50: number
  readonly p90: number
  readonly p99: number
  readonly p999: number
  readonly max: number
  /** Microseconds of CPU time of the server process, user and system, for each request. */
  readonly cpu: number
  /** The same of this process. If it is the greater, throughput and latency are those of the client. */
  readonly clientCpu: number
}

/**
 * Starts the contestant afresh, gives it its plants, asks once, warms it up, and only then measures.
 * @throws WrongAnswerError if an answer is not the one of the case
 */
export async function measure(theCase: Case, contestant: Contestant, settings: Settings): Promise<Measurement> {
  const { status, body } = theCase.answer
  const { file, options } = contestant
  const database = await theCase.database?.create()
  try {
    const answer = { status, body: body.toString() }
    const refusal: unknown = status === 401 ? JSON.parse(answer.body) : undefined
    const given = { token: TOKEN, refusal, answer, location: database?.location, options }
    const server = await ServerProcess.start(file, given, settings.profiles)
    try {
      await seed(theCase, contestant, settings, server)
      return await run(theCase, contestant, settings, server)
    } finally {
      await server.stop()
    }
  } finally {
    await database?.remove()
  }
}

/** Ends after so many requests, or after so long. */
type Phase = Required<Pick<Load, 'requests' | 'seconds'>>

/** The first request, the warm-up, and what is measured. */
function phases({ seeds, connections }: Case, { duration }: Settings): [first: Phase, warmUp: Phase, measured: Phase] {
  const perSecond = typeof seeds === 'number' ? Infinity : seeds.perSecond
  const phase = (seconds: number): Phase => ({ requests: Math.ceil(perSecond * seconds), seconds })
  // One connection asks a tenth as much, and would measure code that has not been compiled yet.
  const warmUp = connections === 1 ? 2 * duration : Math.min(1, duration / 2)
  return [{ requests: 1, seconds: Infinity }, phase(warmUp), phase(duration)]
}

async function seed(
  theCase: Case,
  { constant }: Contestant,
  settings: Settings,
  { port }: ServerProcess,
): Promise<void> {
  if (constant) return
  const { seeds, seed, database } = theCase
  const each = phases(theCase, settings).reduce((sum, { requests }) => sum + requests, 0)
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

async function run(
  theCase: Case,
  { writes }: Contestant,
  settings: Settings,
  server: ServerProcess,
): Promise<Measurement> {
  const { request, answer, database, connections = settings.connections } = theCase
  const { pipelining } = settings
  // A database needs the core that a spinning client would take.
  const spins = database === undefined
  const client = await Client.connect(server.port, connections)
  const writer = await Client.connect(server.port, writes ? connections : 0)
  try {
    let sent = 0
    let written = 0
    const send = async ({ requests, seconds }: Phase): Promise<Outcome> => {
      const [from, writtenBefore] = [sent, written]
      const [outcome, writing] = await Promise.all([
        client.send({ request: (n) => request(from + n), answer, pipelining, spins, requests, seconds }),
        writer.send({ request: (n) => write(writtenBefore + n), answer: { status: 200 }, requests, seconds }),
      ])
      sent += outcome.answered
      written += writing.answered
      return outcome
    }
    const [first, warmUp, measured] = phases(theCase, settings)
    await send(first)
    await send(warmUp)

    const before = await server.usage()
    const clientBefore = process.cpuUsage()
    const { answered, seconds, latencies } = await send(measured)
    const { user, system } = process.cpuUsage(clientBefore)
    const after = await server.usage()
    return {
      requestsPerSecond: answered / seconds,
      p50: percentile(latencies, 50),
      p90: percentile(latencies, 90),
      p99: percentile(latencies, 99),
      p999: percentile(latencies, 99.9),
      max: percentile(latencies, 100),
      cpu: (after.cpu - before.cpu) / answered,
      clientCpu: (user + system) / answered,
    }
  } finally {
    client.close()
    writer.close()
  }
}
