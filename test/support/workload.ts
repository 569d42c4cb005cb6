import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Plant } from '../../src/plants/plant.ts'
import type { Program } from './program.ts'

/** What is known of a plant: unsure from when an operation is sent until it is answered, and for ever if by 50301. */
type State = 'present' | 'absent' | 'unsure'

/** Clients that create and delete plants, each its own, and remember what they were told. */
export class Workload {
  /** What was answered 200 or 204. */
  acknowledged = 0
  /** What was answered 503: 50300, after which nothing may have been carried out, or 50301. */
  unavailable = 0
  unknown = 0
  readonly #plants: State[] = []
  readonly #running: Promise<void>[] = []
  readonly #goals = new Map<number, () => void>()
  #isStopped = false

  /** Starts clients, each of which ends with its service. */
  start(program: Program, clients: number): void {
    for (let client = 0; client < clients; client++) this.#running.push(this.#work(program))
  }

  /** Settles once so many operations more have been acknowledged. */
  progress(operations: number): Promise<void> {
    return new Promise((resolve) => this.#goals.set(this.acknowledged + operations, resolve))
  }

  /**
   * Stops the clients and compares what is listed with what they were told.
   * @throws AssertionError if the two differ, or anything was answered but success and 503
   */
  async finish(program: Program): Promise<void> {
    this.#isStopped = true
    await Promise.all(this.#running)
    const plants = (await (await program.fetch('/plants')).json()) as Plant[]
    const listed = new Set(plants.map(({ name }) => Number(name)))
    for (const [id, state] of this.#plants.entries()) {
      if (state !== 'unsure') assert.equal(listed.has(id), state === 'present', `${id} was acknowledged as ${state}`)
    }
  }

  async #work(program: Program): Promise<void> {
    const own: number[] = []
    while (!this.#isStopped) {
      const doomed = Math.random() < 0.4 ? own.pop() : undefined
      const id = doomed ?? this.#plants.length
      this.#plants[id] = 'unsure'
      const answer = doomed === undefined ? await create(program, id) : await remove(program, id)
      if (answer === undefined) return
      const [before, after]: State[] = doomed === undefined ? ['absent', 'present'] : ['present', 'absent']
      if (answer.error === 50301) {
        this.unknown++
      } else if (answer.error === 50300) {
        this.#plants[id] = before!
        if (doomed !== undefined) own.push(id)
      } else {
        assert.equal(answer.status, doomed === undefined ? 200 : 204)
        this.#plants[id] = after!
        if (doomed === undefined) own.push(id)
        this.acknowledged++
        this.#goals.get(this.acknowledged)?.()
      }
      if (answer.status === 503) {
        this.unavailable++
        // Asking on at once would leave its servers no processor to come back with.
        await sleep(50)
      }
    }
  }
}

/** What a request was answered; undefined if the service was killed before. */
type Answer = { readonly status: number; readonly error: number | undefined } | undefined

function create(program: Program, id: number): Promise<Answer> {
  return answerOf(program, '/plants', { method: 'POST', body: `{"id":${id},"name":"${id}"}` })
}

function remove(program: Program, id: number): Promise<Answer> {
  return answerOf(program, `/plants/${id}`, { method: 'DELETE' })
}

async function answerOf(program: Program, ...[path, init]: Parameters<Program['fetch']>): Promise<Answer> {
  try {
    const response = await program.fetch(path, init)
    const { status } = response
    const body = await response.text()
    return { status, error: status < 300 ? undefined : (JSON.parse(body) as { error: number }).error }
  } catch (error) {
    if (program.child.killed) return undefined
    throw error
  }
}
