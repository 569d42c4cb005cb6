import assert from 'node:assert/strict'
import { promisify, inspect } from 'node:util'
import fc from 'fast-check'
import { assertSound, findDifference } from './compare.ts'
import { converse, type Outcome } from './conversation.ts'
import { serveFuzzed, type FuzzedServer, type FuzzedService } from './service.ts'
import { trials, type Trial } from './trial.ts'
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
  let sequences = 0
  let isBroken = false

  const property = fc.asyncProperty(trials, async (trial) => {
    for (const { status } of await attempt(service, kind, trial)) answers.set(status, (answers.get(status) ?? 0) + 1)
  })

  async function tryOnce(): Promise<void> {
    try {
      await fc.assert(property, {
        seed: Math.imul(seed, 0x9e3779b1) + sequences++,
        numRuns: 1,
        includeErrorInReport: true,
      })
    } catch (error) {
      isBroken = true
      throw error
    }
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

  try {
    const heapBefore = await tryMany(() => sequences < WARM_UP)
    const endsAt = performance.now() + seconds * 1000
    const heapGrowth = (await tryMany(() => performance.now() < endsAt)) - heapBefore
    assert.ok(heapGrowth < MAX_HEAP_GROWTH, `${heapGrowth} bytes more are held than before`)
    return { sequences, answers, heapGrowth, wakings: service.wakings() }
  } finally {
    await close(service.server)
  }
}

/**
 * Sends a sequence twice, and returns all answers.
 * @throws AssertionError if an outcome breaks the contract, or if they differ
 */
async function attempt(
  service: FuzzedService,
  kind: FuzzedServer,
  { requests, cuts, pace }: Trial,
): Promise<Outcome['answers']> {
  const bytes = requests.join('')
  async function sendCut(...at: Parameters<typeof converse>[2]): Promise<Outcome> {
    const outcome = await converse(service, bytes, at, pace)
    assertSound(outcome, kind)
    assert.deepEqual(service.errors.splice(0), [], 'the host was told of an error')
    return outcome
  }
  const [whole, split] = [await sendCut(), await sendCut(...cuts)]
  const difference = findDifference(whole, split, kind, bytes)
  assert.ok(difference === undefined, `${difference}\n${inspect({ whole, split }, { depth: 5 })}`)
  return [...whole.answers, ...split.answers]
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
