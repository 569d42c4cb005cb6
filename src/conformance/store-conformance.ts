/**
 * A test suite that checks whether a custom store fulfills the contract of the `Store` interface.
 * @module plant-store/conformance
 */

import type { MaybePromise } from '../legacy/maybe-promise.ts'
import { readMember } from '../legacy/option-checks.ts'
import type { Store } from '../legacy/plants/store.ts'
import { assertEmpty, awaitCall, wrapStore } from './assertions.ts'
import { CHECKS } from './checks.ts'
import { FAILURE_CHECKS } from './failure-checks.ts'

/** The options of {@link storeConformance}. */
export interface ConformanceOptions<S extends Store = Store> {
  /** Registers a test. Pass `test` from node:test, Vitest or Jest, or `it` from Mocha. */
  readonly test: (name: string, run: () => Promise<void>) => unknown
  /** The name of the store, which precedes the names of the tests. @default '' */
  readonly name?: string | undefined
  /** Creates an empty store. Called once for each test; the test closes the store when it ends. */
  readonly create: () => MaybePromise<S>
  /**
   * Makes every create and delete of a store fail until `restore` is called, for example by locking its file. If you
   * pass both `breakWrites` and `restore`, the suite also tests how the store handles failed writes.
   */
  readonly breakWrites?: ((store: S) => unknown) | undefined
  /**
   * Makes the store's writes work again. If this function returns a promise, writes need to work only once the promise
   * resolves.
   */
  readonly restore?: ((store: S) => unknown) | undefined
  /** Seeds the random operations: the same seed repeats the same operations. @default 1 */
  readonly seed?: number | undefined
  /** Timeout for `create` and for each store call, in milliseconds. @default 10_000 */
  readonly storeTimeoutMs?: number | undefined
}

/**
 * Registers the tests that check whether a store fulfills the contract of {@link Store}. If a test fails, its error
 * contains the call, what the call returned, and what it should have returned.
 * @throws TypeError if only one of `breakWrites` and `restore` is set
 *
 * @example
 * import { test } from 'node:test'
 * import { memoryStore } from 'plant-store'
 * import { storeConformance } from 'plant-store/conformance'
 *
 * // Replace memoryStore() with your own store.
 * storeConformance({ test, create: () => memoryStore() })
 */
export function storeConformance<S extends Store>(options: ConformanceOptions<S>): void {
  const { test, create } = options
  const prefix = readMember(options, 'name') === undefined ? '' : `${options.name}: `
  const seed = readMember(options, 'seed') ?? 1
  const storeTimeoutMs = readMember(options, 'storeTimeoutMs') ?? 10_000
  const breakWrites = readMember(options, 'breakWrites')
  const restore = readMember(options, 'restore')
  if ((breakWrites === undefined) !== (restore === undefined)) {
    throw new TypeError('`breakWrites` and `restore` require each other: set both or neither')
  }
  const checks = { ...CHECKS, ...(breakWrites && FAILURE_CHECKS) }
  let failures = 0
  for (const [name, check] of Object.entries(checks)) {
    test(`${prefix}${name}`, async () => {
      const created = await awaitCall('The create option', create, storeTimeoutMs)
      // A call that timed out in a failed test may still create plants, even in the store of the next test.
      const store = wrapStore(created, storeTimeoutMs, failures === 0 ? '' : ` ${failures}`)
      async function whileBroken<T>(call: () => Promise<T>): Promise<T> {
        await awaitCall('The breakWrites option', () => breakWrites!(created), storeTimeoutMs)
        return call().finally(() => awaitCall('The restore option', () => restore!(created), storeTimeoutMs))
      }
      try {
        await assertEmpty(store)
        await check(store, { seed, hasPing: created.ping !== undefined, whileBroken })
      } catch (error) {
        failures++
        // A broken store may also fail to close. Report only the first error.
        await store.close().catch(() => undefined)
        throw error
      }
      await store.close()
    })
  }
}
