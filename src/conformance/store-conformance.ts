/**
 * A test suite that checks whether a custom store fulfills the contract of the `Store` interface.
 * @module plant-store/conformance
 */

import type { MaybePromise } from '../maybe-promise.ts'
import { readMember } from '../option-checks.ts'
import type { Store } from '../plants/store.ts'
import { CHECKS } from './checks.ts'
import { assertEmpty, awaitCall, wrapStore } from './assertions.ts'

/** The options of {@link storeConformance}. */
export interface ConformanceOptions {
  /** Registers a test. Pass `test` from node:test, Vitest or Jest, or `it` from Mocha. */
  readonly test: (name: string, run: () => Promise<void>) => unknown
  /** Creates an empty store. Called once for each test; the test closes the store when it ends. */
  readonly create: () => MaybePromise<Store>
  /** Seeds the random operations: the same seed repeats the same operations. @default 1 */
  readonly seed?: number | undefined
  /** Timeout for `create` and for each store call, in milliseconds. @default 10_000 */
  readonly storeTimeoutMs?: number | undefined
}

/**
 * Registers the tests that check whether a store fulfills the contract of {@link Store}. If a test fails, its error
 * contains the call, what the call returned, and what it should have returned.
 *
 * @example
 * import { test } from 'node:test'
 * import { memoryStore } from 'plant-store'
 * import { storeConformance } from 'plant-store/conformance'
 *
 * // Replace memoryStore() with your own store.
 * storeConformance({ test, create: () => memoryStore() })
 */
export function storeConformance(options: ConformanceOptions): void {
  const { test, create } = options
  const seed = readMember(options, 'seed') ?? 1
  const storeTimeoutMs = readMember(options, 'storeTimeoutMs') ?? 10_000
  for (const [name, check] of Object.entries(CHECKS)) {
    test(name, async () => {
      const store = wrapStore(await awaitCall('The create option', create, storeTimeoutMs), storeTimeoutMs)
      try {
        await assertEmpty(store)
        await check(store, seed)
      } catch (error) {
        // A broken store may fail to close as well. Only the first error is reported.
        await store.close().catch(() => undefined)
        throw error
      }
      await store.close()
    })
  }
}
