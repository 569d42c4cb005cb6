import assert from 'node:assert/strict'
import type { TestContext } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Plant } from '../../../../src/plants/plant.ts'
import { checkHistory, type Listing, type Operation } from './history.ts'
import { TOKEN, type Program } from '../../program/program.ts'
import { until } from '../../until.ts'

const RACE_SECONDS = Number(process.env['TEST_RACE_SECONDS'] ?? 5)

/** How the clients of a {@link Workload} work. */
const MANNER = {
  /** Between an answer to a client and its next operation, so that servers have a processor to come back with. */
  pauseMs: 50,
  /** The tag of each plant. */
  tagOf: (() => undefined) as (id: number) => string | undefined,
  /** Of how many ids any client wants any. By default each plant is of one client at a time. */
  rivalIds: 0,
}

/**
 * Clients that create, delete and list plants, and remember what they were told. Plants whose names are negative
 * numbers are not theirs.
 */
export class Workload {
  /** Creates and deletes that were answered 200 or 204. */
  acknowledged = 0
  /** Those that were answered 50300, lists included: nothing was carried out. */
  refused = 0
  /** Those that were answered 50301, or not at all: they may have been carried out. */
  unknown = 0
  /** Those that came too late for one id of many rivals. */
  lost = 0
  readonly #operations: Operation[] = []
  readonly #listings: Listing[] = []
  readonly #running: Promise<void>[] = []
  readonly #goals = new Map<number, () => void>()
  /** The plants that may be deleted. */
  readonly #own: number[] = []
  readonly #token: string
  readonly #manner: typeof MANNER
  #clock = 0
  #nextId = 0
  #isStopped = false

  /** @param token of the owner of all its plants */
  constructor(token = TOKEN, manner: Partial<typeof MANNER> = {}) {
    this.#token = token
    this.#manner = { ...MANNER, ...manner }
  }

  /** Starts clients that create and delete, and one that lists. They end with their service. */
  start(program: Program, clients: number): void {
    for (let client = 0; client < clients; client++) this.#running.push(this.#work(program))
    this.#running.push(this.#watch(program))
  }

  /** Settles once so many operations more have been acknowledged. */
  progress(operations: number): Promise<void> {
    return new Promise((resolve) => this.#goals.set(this.acknowledged + operations, resolve))
  }

  /**
   * Stops the clients and checks that what they were told fits together, a last list included.
   * @throws AssertionError if it does not, or anything was answered but success and 503
   */
  async finish(program: Program): Promise<void> {
    this.#isStopped = true
    await Promise.all(this.#running)
    await until(async () => (await this.#list(program)) === 200)
    checkHistory(this.#operations, this.#listings)
  }

  async #work(program: Program) {
    const { pauseMs, tagOf, rivalIds } = this.#manner
    while (!this.#isStopped) {
      const [kind, id] = this.#next()
      const start = this.#clock++
      const name = `${id} ${start}`
      const answer = await (kind === 'create'
        ? this.#ask(program, '/plants', { method: 'POST', body: JSON.stringify({ id, name, tag: tagOf(id) }) })
        : this.#ask(program, `/plants/${id}`, { method: 'DELETE' }))
      const end = this.#clock++
      const record = (succeeded?: boolean) => this.#operations.push({ kind, id, name, start, end, succeeded })

      if (rivalIds > 0 && answer?.error === (kind === 'create' ? 40900 : 40401)) {
        this.lost++
        record(false)
      } else if (answer?.error === 50300) {
        this.refused++
        if (kind === 'delete') this.#own.push(id)
      } else if (answer === undefined || answer.error === 50301) {
        this.unknown++
        record()
      } else {
        assert.equal(answer.status, kind === 'create' ? 200 : 204)
        record(true)
        if (kind === 'create') this.#own.push(id)
        this.acknowledged++
        this.#goals.get(this.acknowledged)?.()
      }
      if (answer === undefined) return
      await sleep(pauseMs)
    }
  }

  #next(): [kind: Operation['kind'], id: number] {
    // Some ids are wanted more than others.
    const id = Math.floor(Math.random() ** 2 * this.#manner.rivalIds)
    if (this.#manner.rivalIds > 0) return [Math.random() < 0.5 ? 'create' : 'delete', id]
    const doomed = Math.random() < 0.4 ? this.#own.pop() : undefined
    return doomed === undefined ? ['create', this.#nextId++] : ['delete', doomed]
  }

  async #watch(program: Program) {
    const interval = this.#manner.rivalIds > 0 ? 0 : 250
    while (!this.#isStopped && (await this.#list(program)) !== undefined) await sleep(interval)
  }

  /** Lists all plants. Returns the status, or undefined if the service was killed before. */
  async #list(program: Program): Promise<number | undefined> {
    const start = this.#clock++
    const answer = await this.#ask(program, '/plants')
    if (answer?.status === 503) this.refused++
    if (answer?.status !== 200) return answer?.status
    const listed = (answer.body as Plant[]).map((plant) => ({ id: parseInt(plant.name), ...plant }))
    const plants = listed.filter(({ id }) => id >= 0)
    assert.ok(plants.every(({ id }, i) => i === 0 || plants[i - 1]!.id <= id))
    for (const { id, tag } of plants) assert.equal(tag, this.#manner.tagOf(id))
    this.#listings.push({ start, end: this.#clock++, plants })
    return answer.status
  }

  /** Settles with undefined if the service was killed before it answered. */
  async #ask(program: Program, path: string, init?: Parameters<Program['fetch']>[1]) {
    try {
      const response = await program.fetch(path, init, this.#token)
      const text = await response.text()
      const body = text === '' ? {} : (JSON.parse(text) as { error?: number })
      return { status: response.status, body, error: body.error }
    } catch (error) {
      if (program.child.killed) return undefined
      throw error
    }
  }
}

/**
 * Has clients of several programs want the same few plants of one owner, and checks that the programs act as one.
 * @throws AssertionError if they do not, or answered 503
 */
export async function race(t: TestContext, programs: Program[], clients: number, token?: string): Promise<void> {
  const workload = new Workload(token, { pauseMs: 0, rivalIds: 200 })
  for (const program of programs) workload.start(program, clients / programs.length)
  await sleep(RACE_SECONDS * 1000)
  await workload.finish(programs[0]!)
  const { acknowledged, lost, refused, unknown } = workload
  t.diagnostic(`${acknowledged} acknowledged, ${lost} too late`)
  assert.deepEqual([refused, unknown], [0, 0])
  assert.ok(acknowledged > 0 && lost > 0)
}
