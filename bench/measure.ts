import { type Case, REFUSAL, TOKEN } from './cases.ts'
import type { Contestant } from './contestants.ts'
import { Client, type Outcome } from './load.ts'
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
  /** The same of this process. Where it is the greater, throughput and latency are those of the client. */
  readonly clientCpu: number
}

/** How many plants there are to delete. A server that is faster than this has a shorter run. */
const DELETES_PER_SECOND = 50_000

/**
 * Starts the contestant afresh, gives it its plants, asks once, warms it up, and only then measures.
 * @throws WrongAnswerError where any answer is not the one of the case
 */
export async function measure(
  { seeds, seed, request, answer }: Case,
  { file, constant }: Contestant,
  { connections, pipelining, duration, profiles }: Settings,
): Promise<Measurement> {
  const warmUp = Math.min(1, duration / 2)
  const limit = (seconds: number): number =>
    seeds === 'one for each request' ? Math.ceil(DELETES_PER_SECOND * seconds) : Infinity
  const plants = constant ? 0 : seeds === 'one for each request' ? 1 + limit(warmUp) + limit(duration) : seeds

  const body = answer.body.toString()
  const settings = { token: TOKEN, refusal: REFUSAL, answer: { status: answer.status, body } }
  const server = await ServerProcess.start(file, settings, profiles)
  const client = await Client.connect(server.port, connections)
  try {
    // On one connection, so that they arrive in order: some contestants list plants as they came.
    const seeder = await Client.connect(server.port, 1)
    await seeder.send({ request: seed, requests: plants, answer: { status: 200 }, pipelining: 64 })
    seeder.close()

    let sent = 0
    const send = async (requests: number, seconds: number): Promise<Outcome> => {
      const from = sent
      const outcome = await client.send({ request: (n) => request(from + n), answer, pipelining, requests, seconds })
      sent += outcome.answered
      return outcome
    }
    await send(1, Infinity)
    await send(limit(warmUp), warmUp)

    const before = await server.usage()
    const clientBefore = process.cpuUsage()
    const { answered, seconds, latencies } = await send(limit(duration), duration)
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
    await server.stop()
  }
}
