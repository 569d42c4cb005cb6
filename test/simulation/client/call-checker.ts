import { PlantStoreError, type ListedPlant } from '../../../src/client/plant-client.ts'
import type { Simulation } from '../simulation.ts'
import type { Event } from './scenario.ts'

type ClientEvent = Extract<Event, { kind: 'create' | 'delete' | 'list' }>
type WriteEvent = Extract<ClientEvent, { name: string }>

/** One attempt of a call, as the proxy sees it. */
interface Attempt {
  readonly request: string
  endedAt: number
  /** The status of the response, or 0 without a complete response. */
  status: number
  /** How long the client must wait before the next attempt, in milliseconds. */
  minDelayMs: number
}

/** A client call. */
export interface Call {
  readonly number: number
  readonly event: ClientEvent
  readonly startedAt: number
  /** The index of the state in which the call started. */
  readonly firstState: number
  readonly controller: AbortController
  readonly attempts: Attempt[]
  readonly listed: ListedPlant[]
  /** How many times the call's requests have created or deleted the plant. */
  effectCount: number
  /**
   * Whether the proxy has repeated a request, so that the first copy may be the reason for the response to the second.
   */
  isRepeated: boolean
  isSettled: boolean
  /** Whether the call must never have an effect. */
  isWithoutEffect: boolean
}

/** Checks client calls against the actual history of the plants. */
export class CallChecker {
  readonly calls: Call[] = []
  readonly #world: Simulation
  /** All states of the store so far. Each state contains the plants, keyed by id. */
  readonly #states: ReadonlyMap<bigint, ListedPlant>[] = [new Map()]

  constructor(world: Simulation) {
    this.#world = world
  }

  get plants(): readonly ListedPlant[] {
    return [...this.#states.at(-1)!.values()].sort((a, b) => (a.id < b.id ? -1 : 1))
  }

  /** Records a change to the store. */
  onChange(id: bigint, plant: ListedPlant | undefined): void {
    const state = new Map(this.#states.at(-1))
    if (plant === undefined) state.delete(id)
    else state.set(id, plant)
    this.#states.push(state)
    this.#world.log('stored', id, plant?.name ?? 'nothing')
  }

  onEffect(call: Call): void {
    call.effectCount++
    this.#world.check(!call.isWithoutEffect, 'a call that was reported as having no effect has none:', call.number)
  }

  start(event: ClientEvent): Call {
    const call: Call = {
      number: this.calls.length + 1,
      event,
      startedAt: this.#world.time.now,
      firstState: this.#states.length - 1,
      controller: new AbortController(),
      attempts: [],
      listed: [],
      effectCount: 0,
      isRepeated: false,
      isSettled: false,
      isWithoutEffect: false,
    }
    this.calls.push(call)
    return call
  }

  /** Checks whether the client may send a request now. */
  onRequest(call: Call, request: string, retries: number): Attempt {
    const { time } = this.#world
    const check = (condition: boolean, rule: string): void => this.#world.check(condition, rule, call.number, request)
    check(!call.isSettled, 'a call that has settled sends no request:')
    const previous = call.attempts.at(-1)
    if (previous?.request === request) {
      const isRetryable = [0, 401, 408, 429, 502, 503, 504].includes(previous.status)
      check(isRetryable, 'a request is only repeated if that can help:')
      if (previous.status !== 401) {
        // Delays may be fractions of milliseconds, whose sums have rounding errors.
        const waitedMs = Math.round(time.now - previous.endedAt)
        check(waitedMs >= previous.minDelayMs, 'a retry respects backoff and Retry-After:')
        check(waitedMs <= 30_000, 'a retry waits for at most 30 s:')
      }
      const same = call.attempts.filter((attempt) => attempt.request === request)
      const rejectedCount = same.filter(({ status }) => status === 401).length
      check(rejectedCount <= 1, 'a token is renewed once:')
      check(same.length - rejectedCount <= retries, 'a request is not retried too often:')
    }
    const attempt = { request, endedAt: time.now, status: 0, minDelayMs: 0 }
    call.attempts.push(attempt)
    return attempt
  }

  onSuccess(call: Call): void {
    const { event, number } = call
    call.isSettled = true
    this.#world.log('call', number, 'succeeded', call.listed.map(({ id }) => id).join())
    if (event.kind === 'list') return this.#checkList(call, event, true)
    this.#checkState(call, event.kind === 'create')
    const wasUncertain = call.attempts.some(({ status }) => status === 0 || status >= 502)
    this.#world.check(
      call.effectCount > 0 || wasUncertain,
      'a write succeeds without effect only after a retry:',
      number,
    )
  }

  onFailure(call: Call, error: unknown): void {
    const { event, number, controller, effectCount } = call
    const check = (condition: boolean, rule: string): void => this.#world.check(condition, rule, number, error)
    call.isSettled = true
    this.#world.log('call', number, error)
    if (event.kind === 'list') this.#checkList(call, event, false)
    if (controller.signal.aborted)
      return check(error === controller.signal.reason, 'an aborted call rejects with the reason:')
    if (!(error instanceof PlantStoreError)) return check(false, 'every failure is a PlantStoreError:')
    const rejectedCount = call.attempts.filter(({ status }) => status === 401).length
    check(error.status !== 401 || rejectedCount >= 2, 'a token is renewed before a call fails:')
    if (error.error === 40900 || error.error === 40401) {
      const exists = error.error === 40900
      check(exists === (event.kind === 'create'), 'the error belongs to the operation:')
      const { id } = event as { id: bigint }
      const isTrue = this.#states.slice(call.firstState).some((state) => state.has(id) === exists)
      check(isTrue, 'a plant that is reported as existing or missing was so during the call:')
      if (call.isRepeated) return
      const isOwn = event.kind === 'create' && effectCount > 0 && this.#isStored(event, this.#states.at(-1)!)
      check(!isOwn, 'a created plant is not reported as a conflict:')
      const isGone = event.kind === 'delete' && effectCount > 0
      check(!isGone, 'a deleted plant is not reported as missing:')
    }
    if (event.kind === 'list') return check(!error.isOutcomeUnknown, 'the outcome of a list is never unknown:')
    call.isWithoutEffect = !error.isOutcomeUnknown
    check(error.isOutcomeUnknown || effectCount === 0, 'a call that is reported as having no effect has none:')
  }

  /**
   * Checks that, at some time during the call, the plant existed exactly as sent or, if `exists` is false, was missing.
   */
  #checkState({ event, firstState, number }: Call, exists: boolean): void {
    const write = event as WriteEvent
    const isTrue = this.#states
      .slice(firstState)
      .some((state) => (exists ? this.#isStored(write, state) : !state.has(write.id)))
    this.#world.check(isTrue, 'a write that succeeds has happened:', number)
  }

  #isStored({ id, name, tag }: WriteEvent, state: ReadonlyMap<bigint, ListedPlant>): boolean {
    const plant = state.get(id)
    return plant?.name === name && plant.tag === tag
  }

  /**
   * Checks that a list contains every plant that existed throughout the call, and no plant that never existed during
   * the call.
   */
  #checkList(
    { listed, number, firstState }: Call,
    event: Extract<ClientEvent, { kind: 'list' }>,
    isEnd: boolean,
  ): void {
    const { after = -1n, limit = Infinity } = event
    const check = (condition: boolean, rule: string): void => this.#world.check(condition, rule, number)
    const states = this.#states.slice(firstState)
    check(listed.length <= limit, 'a list respects its limit:')
    check(
      listed.every(({ id }, index) => id > (listed[index - 1]?.id ?? after)),
      'a list is in order:',
    )
    const isSame = (a: ListedPlant | undefined, b: ListedPlant): boolean => a?.name === b.name && a.tag === b.tag
    const isTrue = listed.every((plant) => states.some((state) => isSame(state.get(plant.id), plant)))
    check(isTrue, 'a listed plant existed during the call:')
    const last = isEnd && listed.length < limit ? Infinity : (listed.at(-1)?.id ?? after)
    const permanent = [...states[0]!.keys()].filter((id) => states.every((state) => state.has(id)))
    const expected = permanent.filter((id) => id > after && id <= last)
    check(
      expected.every((id) => listed.some((plant) => plant.id === id)),
      'a list contains every plant:',
    )
  }
}
