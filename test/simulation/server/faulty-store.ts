import { StoreUnavailableError, type NewPlant, type Page, type PageRequest, type Store } from '../../../src/index.ts'
import { callSafely } from '../../../src/maybe-promise.ts'
import type { Simulation } from '../simulation.ts'
import type { SentRequest } from './connection-checker.ts'
import type { Fault, Scenario } from './scenario.ts'

/** The `storeTimeoutMs` of the service under test. */
export const STORE_TIMEOUT_MS = 200

const LONG_NAME = 'x'.repeat(131_072)

/** A store and token lookup that respond immediately, late or never, or fail. */
export class FaultyStore implements Store {
  readonly storedIds = new Set<bigint>()
  hasBlocked = false
  readonly #world: Simulation
  readonly #nextFault: () => Fault | undefined
  readonly #currentRequest: () => SentRequest

  constructor(world: Simulation, faults: Scenario['faults'], currentRequest: () => SentRequest) {
    this.#world = world
    this.#nextFault = world.createFaultSource(faults)
    this.#currentRequest = currentRequest
  }

  authenticate(token: string): Promise<string | null> | string | null {
    return this.#callWithFault('token', () => (token === 'none' ? null : token))
  }

  create(_owner: string, { id, name }: NewPlant): Promise<boolean> | boolean {
    const { number } = this.#currentRequest()
    this.#world.check(
      name === `plant ${number}`,
      'the store is called in the async context of its request:',
      name,
      number,
    )
    return this.#callWithFault('write', () => {
      this.storedIds.add(id)
      return true
    })
  }

  delete(): Promise<boolean> | boolean {
    return this.#callWithFault('write', () => false)
  }

  list(owner: string, { after = 0n, limit }: PageRequest): Promise<Page> | Page {
    const request = this.#currentRequest()
    // After the first page, the response has begun, so an error can only truncate it.
    if (after > 0n) request.mayBeTruncated = true
    const isLong = owner === 'eve'
    return this.#callWithFault('list', () => {
      const ids = isLong ? [1n, 2n] : [...this.storedIds].sort((a, b) => Number(a - b))
      const following = ids.filter((id) => id > after)
      const count = isLong ? 1 : limit
      const plants = following.slice(0, count).map((id) => ({ id, name: isLong ? LONG_NAME : `plant ${id}` }))
      return { plants, hasMore: following.length > count }
    })
  }

  /** Runs an operation with the next fault, and records the error that the client has to get because of it. */
  #callWithFault<T>(operation: 'token' | 'write' | 'list', action: () => T): Promise<T> | T {
    const request = this.#currentRequest()
    this.#world.check(
      request.receivedCode === undefined,
      'the store is not called for a request that has its response:',
      request.number,
    )
    const fault = this.#nextFault()
    if (fault === undefined) return action()
    const { kind, ms, isDone } = fault
    this.#world.log('fault in', request.number, operation, kind, ms)
    if (kind === 'work') {
      this.hasBlocked = true
      this.#world.time.simulateWork(ms)
      return action()
    }
    const isUnknown = kind === 'unknown' || kind === 'never' || ms > STORE_TIMEOUT_MS
    const isInternalError = kind === 'fault' && ms <= STORE_TIMEOUT_MS
    const expectedCode = isInternalError ? 50000 : isUnknown && operation !== 'token' ? 50301 : 50300
    if (kind !== 'late' || ms > STORE_TIMEOUT_MS) request.expectedCode = expectedCode
    const apply = (): T => {
      if (isUnknown && isDone) action()
      if (kind === 'late') return action()
      throw kind === 'fault' ? new Error(kind) : new StoreUnavailableError(kind, { isOutcomeUnknown: isUnknown })
    }
    if (ms === 0 && kind !== 'never') return apply()
    return new Promise((resolve, reject) => {
      if (kind === 'never') return
      this.#world.time.schedule(ms, () => callSafely(() => resolve(apply()), reject))
    })
  }
}
