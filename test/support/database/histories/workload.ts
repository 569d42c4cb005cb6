import assert from 'node:assert/strict'
import type { TestContext } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Plant } from '../../../../src/plants/plant.ts'
import { assertLinearizable, type Listing, type Operation } from './linearizability.ts'
import { TOKEN, type Program } from '../../program/program.ts'
import { waitUntil } from '../../wait-until.ts'

const RACE_SECONDS = Number(process.env['TEST_RACE_SECONDS'] ?? 5)

/** The default options of a {@link Workload}. */
const DEFAULT_OPTIONS = {
  /** The pause between two operations of a client, which leaves CPU time for the recovery of servers. */
  pauseMs: 50,
  /** Returns the tag of a plant. */
  getTag: (() => undefined) as (id: number) => string | undefined,
  /** The number of ids that all clients compete for. If 0, each plant is used by only one client at a time. */
  contendedIds: 0,
}

/**
 * Runs clients that create, delete and list plants, and record the results. Plants whose names are negative numbers are
 * ignored.
 */
export class Workload {
  /** The number of creates and deletes with status 200 or 204. */
  acknowledged = 0
  /** The number of operations, including lists, with error 50300: nothing was done. */
  unavailable = 0
  /** The number of operations with error 50301 or without a response: they may have taken effect. */
  unknownOutcomes = 0
  /** The number of operations with error 40900 or 40401 because of a competing client. */
  conflicts = 0
  readonly #operations: Operation[] = []
  readonly #listings: Listing[] = []
  readonly #clientLoops: Promise<void>[] = []
  readonly #waiters = new Map<number, () => void>()
  /** The plants that can be deleted. */
  readonly #deletableIds: number[] = []
  readonly #token: string
  readonly #options: typeof DEFAULT_OPTIONS
  #clock = 0
  #nextId = 0
  #isStopped = false

  /** @param token a token of the owner of all the plants */
  constructor(token = TOKEN, options: Partial<typeof DEFAULT_OPTIONS> = {}) {
    this.#token = token
    this.#options = { ...DEFAULT_OPTIONS, ...options }
  }

  /** Starts clients that create and delete, and one that lists. They stop when the program is killed. */
  start(program: Program, clients: number): void {
    for (let client = 0; client < clients; client++) this.#clientLoops.push(this.#runClient(program))
    this.#clientLoops.push(this.#pollList(program))
  }

  /** Resolves when this many more operations have been acknowledged. */
  waitForProgress(operations: number): Promise<void> {
    return new Promise((resolve) => this.#waiters.set(this.acknowledged + operations, resolve))
  }

  /**
   * Stops the clients, lists the plants once more, and checks that the recorded history is linearizable.
   * @throws AssertionError if it isn't, or if a response was neither a success nor 503
   */
  async stopAndVerify(program: Program): Promise<void> {
    this.#isStopped = true
    await Promise.all(this.#clientLoops)
    await waitUntil(async () => (await this.#list(program)) === 200)
    assertLinearizable(this.#operations, this.#listings)
  }

  async #runClient(program: Program) {
    const { pauseMs, getTag: tagOf, contendedIds: rivalIds } = this.#options
    while (!this.#isStopped) {
      const [kind, id] = this.#nextOperation()
      const start = this.#clock++
      const name = `${id} ${start}`
      const response = await (kind === 'create'
        ? this.#sendRequest(program, '/plants', { method: 'POST', body: JSON.stringify({ id, name, tag: tagOf(id) }) })
        : this.#sendRequest(program, `/plants/${id}`, { method: 'DELETE' }))
      const end = this.#clock++
      const record = (succeeded?: boolean) => this.#operations.push({ kind, id, name, start, end, succeeded })

      if (rivalIds > 0 && response?.error === (kind === 'create' ? 40900 : 40401)) {
        this.conflicts++
        record(false)
      } else if (response?.error === 50300) {
        this.unavailable++
        if (kind === 'delete') this.#deletableIds.push(id)
      } else if (response === undefined || response.error === 50301) {
        this.unknownOutcomes++
        record()
      } else {
        assert.equal(response.status, kind === 'create' ? 200 : 204)
        record(true)
        if (kind === 'create') this.#deletableIds.push(id)
        this.acknowledged++
        this.#waiters.get(this.acknowledged)?.()
      }
      if (response === undefined) return
      await sleep(pauseMs)
    }
  }

  #nextOperation(): [kind: Operation['kind'], id: number] {
    // Low ids are used more often than high ones.
    const id = Math.floor(Math.random() ** 2 * this.#options.contendedIds)
    if (this.#options.contendedIds > 0) return [Math.random() < 0.5 ? 'create' : 'delete', id]
    const idToDelete = Math.random() < 0.4 ? this.#deletableIds.pop() : undefined
    return idToDelete === undefined ? ['create', this.#nextId++] : ['delete', idToDelete]
  }

  async #pollList(program: Program) {
    const interval = this.#options.contendedIds > 0 ? 0 : 250
    while (!this.#isStopped && (await this.#list(program)) !== undefined) await sleep(interval)
  }

  /** Lists all plants. Returns the status, or undefined if the program was killed before it responded. */
  async #list(program: Program): Promise<number | undefined> {
    const start = this.#clock++
    const response = await this.#sendRequest(program, '/plants')
    if (response?.status === 503) this.unavailable++
    if (response?.status !== 200) return response?.status
    const listed = (response.body as Plant[]).map((plant) => ({ id: parseInt(plant.name), ...plant }))
    const plants = listed.filter(({ id }) => id >= 0)
    assert.ok(plants.every(({ id }, i) => i === 0 || plants[i - 1]!.id <= id))
    for (const { id, tag } of plants) assert.equal(tag, this.#options.getTag(id))
    this.#listings.push({ start, end: this.#clock++, plants })
    return response.status
  }

  /** Resolves to undefined if the program was killed before it responded. */
  async #sendRequest(program: Program, path: string, init?: Parameters<Program['fetch']>[1]) {
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
 * Lets clients of several programs compete for a few plants of one owner, and checks that the combined history is
 * linearizable.
 * @throws AssertionError if it isn't, or if a response was 503
 */
export async function assertConsistentUnderContention(
  t: TestContext,
  programs: Program[],
  clients: number,
  token?: string,
): Promise<void> {
  const workload = new Workload(token, { pauseMs: 0, contendedIds: 200 })
  for (const program of programs) workload.start(program, clients / programs.length)
  await sleep(RACE_SECONDS * 1000)
  await workload.stopAndVerify(programs[0]!)
  const { acknowledged, conflicts: lost, unavailable: refused, unknownOutcomes: unknown } = workload
  t.diagnostic(`${acknowledged} acknowledged, ${lost} too late`)
  assert.deepEqual([refused, unknown], [0, 0])
  assert.ok(acknowledged > 0 && lost > 0)
}
