import assert from 'node:assert/strict'
import { promisify } from 'node:util'
import fc from 'fast-check'
import { serveFuzzed, type FuzzedServer, type FuzzedService } from './service.ts'
import { attempt, describeFinding, describeTrial, trials, type Trial } from './trial.ts'
import { heapUsed } from '../heap.ts'
import { until } from '../until.ts'
import { RawConnection } from '../wire/raw-connection.ts'
import { close, del, get, post, send } from '../wire/service.ts'

/** What a run has done. */
export interface FuzzReport {
  /** How many sequences of requests were sent, each of them twice. */
  readonly sequences: number
  /** How many answers had each status. */
  readonly answers: ReadonlyMap<number, number>
  /** How much more of the heap is held after the run, in bytes. */
  readonly heapGrowth: number
  /** How often the guard of the server has woken; it slept again in between. */
  readonly wakings: number
}

/** How many sequences are on their way at once. */
const CONCURRENCY = 32

/** So many come before the heap is measured first: until then code is compiled and caches are filled. */
const WARM_UP = 500

const MAX_HEAP_GROWTH = 8 * 2 ** 20

/**
 * Sends sequences of requests to a service, sound and mutated ones, each sequence twice on connections of its own: in
 * one packet, and cut into packets at seeded places. Holds every answer against the contract, and both outcomes against
 * each other: packets must not change what is answered and kept.
 * @throws Error that shows the requests that broke it, and no more of them than it takes
 */
export async function fuzz(kind: FuzzedServer, seconds: number, seed: number): Promise<FuzzReport> {
  const service = await serveFuzzed(kind)
  const answers = new Map<number, number>()
  const running = new Set<Trial>()
  let sequences = 0
  let isBroken = false

  const property = fc.asyncProperty(trials, async (trial) => {
    running.add(trial)
    const finding = await attempt(service, kind, trial)
    running.delete(trial)
    for (const { status } of finding.outcomes.flatMap((outcome) => outcome.answers)) {
      answers.set(status, (answers.get(status) ?? 0) + 1)
    }
    isBroken ||= finding.problem !== undefined
    if (finding.problem !== undefined) throw new Error(describeFinding(finding))
  })

  async function tryOnce(): Promise<void> {
    const index = sequences++
    const { errorInstance } = await fc.check(property, { seed: Math.imul(seed, 0x9e3779b1) + index, numRuns: 1 })
    if (errorInstance instanceof Error) throw new Error(`seed ${seed}, sequence ${index}: ${errorInstance.message}`)
  }

  async function tryMany(goesOn: () => boolean): Promise<number> {
    await Promise.all(
      Array.from({ length: CONCURRENCY }, async (_, i) => {
        while (goesOn() && !isBroken) {
          await tryOnce()
          if (i !== 0) continue
          await assertServes(service)
          await pipeline(service)
        }
      }),
    )
    await assertServes(service)
    await assertNoneOpen(service)
    return heapUsed()
  }

  /** A crash leaves no time to find out which of the sequences it was. */
  function showRunning(): void {
    for (const trial of running) console.error(`seed ${seed}: ${describeTrial(trial)}`)
  }

  process.on('uncaughtExceptionMonitor', showRunning)
  try {
    const heapBefore = await tryMany(() => sequences < WARM_UP)
    const endsAt = performance.now() + seconds * 1000
    const heapGrowth = (await tryMany(() => performance.now() < endsAt)) - heapBefore
    assert.ok(heapGrowth < MAX_HEAP_GROWTH, `${heapGrowth} bytes more are held than before`)
    return { sequences, answers, heapGrowth, wakings: service.wakings() }
  } finally {
    process.off('uncaughtExceptionMonitor', showRunning)
    await close(service.server)
  }
}

/** The service creates, lists and deletes for whoever asks as it should. */
async function assertServes(service: FuzzedService): Promise<void> {
  const visit = service.enter(0)
  const token = `fuzz-${visit.tag}`
  const answers = []
  for (const request of [post(token, '{"id":1,"name":"Fern"}'), get(token), del(token, '1'), get(token)]) {
    const { status, body } = await send(service.server, request)
    answers.push([status, body])
  }
  assert.deepEqual(answers, [
    [200, '{"name":"Fern"}'],
    [200, '[{"name":"Fern"}]'],
    [204, ''],
    [200, '[]'],
  ])
  assert.deepEqual(await service.leave(visit), [])
}

/** Sends so many requests at once that a guard wakes: some sequences then find it awake, and some asleep. */
async function pipeline({ server }: FuzzedService): Promise<void> {
  const client = await RawConnection.open(server)
  await client.send('OPTIONS /plants HTTP/1.1\r\nHost: a\r\n\r\n'.repeat(200)).answers(200)
  client.socket.destroy()
}

async function assertNoneOpen({ server }: FuzzedService): Promise<void> {
  const countOpen = promisify(server.getConnections.bind(server))
  await until(async () => (await countOpen()) === 0)
}
