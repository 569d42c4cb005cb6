import { StoreUnavailableError, type NewPlant, type Page, type PageRequest, type Store } from '../../../src/index.ts'
import { attempt } from '../../../src/maybe-promise.ts'
import type { World } from '../simulation.ts'
import type { Asked } from './exchanges.ts'
import type { Fate, Scenario } from './scenario.ts'

/** How long a call of the store may take. */
export const STORE_TIMEOUT_MS = 200

const LONG = 'x'.repeat(131_072)

/** A store, and those who may ask it, that answer at once, late or not at all, and fail. */
export class Plants implements Store {
  readonly kept = new Set<bigint>()
  hasWorked = false
  readonly #world: World
  readonly #next: () => Fate | undefined
  readonly #currentRequest: () => Asked

  constructor(world: World, fates: Scenario['fates'], currentRequest: () => Asked) {
    this.#world = world
    this.#next = world.inTurn(fates)
    this.#currentRequest = currentRequest
  }

  authenticate(token: string): Promise<string | null> | string | null {
    return this.#call('token', () => (token === 'none' ? null : token))
  }

  create(_owner: string, { id, name }: NewPlant): Promise<boolean> | boolean {
    const { number } = this.#currentRequest()
    this.#world.expect(name === `plant ${number}`, 'the store is called in the context of its request:', name, number)
    return this.#call('write', () => {
      this.kept.add(id)
      return true
    })
  }

  delete(): Promise<boolean> | boolean {
    return this.#call('write', () => false)
  }

  list(owner: string, { after = 0n, limit }: PageRequest): Promise<Page> | Page {
    const request = this.#currentRequest()
    // The list has begun.
    if (after > 0n) request.mayBreak = true
    const isLong = owner === 'eve'
    return this.#call('list', () => {
      const ids = isLong ? [1n, 2n] : [...this.kept].sort((a, b) => Number(a - b))
      const following = ids.filter((id) => id > after)
      const count = isLong ? 1 : limit
      const plants = following.slice(0, count).map((id) => ({ id, name: isLong ? LONG : `plant ${id}` }))
      return { plants, hasMore: following.length > count }
    })
  }

  /** Answers, and notes what the client must be answered if it is a failure. */
  #call<T>(what: 'token' | 'write' | 'list', run: () => T): Promise<T> | T {
    const request = this.#currentRequest()
    this.#world.expect(
      request.answer === undefined,
      'nothing is asked for a request that was answered:',
      request.number,
    )
    const fate = this.#next()
    if (fate === undefined) return run()
    const { kind, ms, isDone } = fate
    this.#world.tell('fate of', request.number, what, kind, ms)
    if (kind === 'work') {
      this.hasWorked = true
      this.#world.time.work(ms)
      return run()
    }
    const isUnknown = kind === 'unknown' || kind === 'never' || ms > STORE_TIMEOUT_MS
    const isFault = kind === 'fault' && ms <= STORE_TIMEOUT_MS
    const failure = isFault ? 50000 : isUnknown && what !== 'token' ? 50301 : 50300
    if (kind !== 'late' || ms > STORE_TIMEOUT_MS) request.code = failure
    const act = (): T => {
      if (isUnknown && isDone) run()
      if (kind === 'late') return run()
      throw kind === 'fault' ? new Error(kind) : new StoreUnavailableError(kind, { isOutcomeUnknown: isUnknown })
    }
    if (ms === 0 && kind !== 'never') return act()
    return new Promise((resolve, reject) => {
      if (kind === 'never') return
      this.#world.time.after(ms, () => attempt(() => resolve(act()), reject))
    })
  }
}
