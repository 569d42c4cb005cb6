/**
 * The tests that say whether a store of your own is right.
 * @module plant-store/conformance
 */

import type { MaybePromise } from '../maybe-promise.ts'
import { readMember } from '../option-checks.ts'
import type { Store } from '../plants/store.ts'
import { CHECKS } from './checks.ts'
import { assertEmpty, awaitCall, wrapStore } from './assertions.ts'

/** The options of {@link storeConformance}. */
export interface ConformanceOptions {
  /** Registers a test: the `test` of node:test, Vitest or Jest, the `it` of Mocha. */
  readonly test: (name: string, run: () => Promise<void>) => unknown
  /** Makes a store without plants. Called for each test, which closes the store at its end. */
  readonly create: () => MaybePromise<Store>
  /** Chooses the random operations: the same number, the same operations. @default 1 */
  readonly seed?: number | undefined
  /** How long `create` and each call of the store may take, in milliseconds, as in the service. @default 10_000 */
  readonly storeTimeoutMs?: number | undefined
}

/**
 * Registers the tests that say whether a store keeps the contract of {@link Store}. A failed test names the call, its
 * result, and the result that it must have.
 *
 * @example
 * import { test } from 'node:test'
 * import { memoryStore } from 'plant-store'
 * import { storeConformance } from 'plant-store/conformance'
 *
 * // In place of this, a store of your own.
 * storeConformance({ test, create: () => memoryStore() })
 */
export function storeConformance(options: ConformanceOptions): void {
  const { test, create } = options
  const seed = readMember(options, 'seed') ?? 1
  const storeTimeoutMs = readMember(options, 'storeTimeoutMs') ?? 10_000
  for (const [name, check] of Object.entries(CHECKS)) {
    test(name, async () => {
      const store = wrapStore(await awaitCall('create of the options', create, storeTimeoutMs), storeTimeoutMs)
      try {
        await assertEmpty(store)
        await check(store, seed)
      } catch (error) {
        // A store that fails may not close either. What failed first is what matters.
        await store.close().catch(() => undefined)
        throw error
      }
      await store.close()
    })
  }
}
