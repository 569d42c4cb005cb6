/**
 * A test suite that checks whether a store meets the requirements of the `Store` interface.
 * @module plant-store/conformance
 */

import assert from 'node:assert/strict'
import type { MaybePromise, Page, Store } from '../plants/store.ts'
import { CHECKS, FAILURE_CHECKS } from './checks.ts'
import { quote, TestedStore, waitFor } from './tested-store.ts'

/** The options of {@link storeConformance}. */
export interface ConformanceOptions<S extends Store = Store> {
  /** Registers a test. Pass `test` from node:test, Vitest or Jest, or `it` from Mocha. */
  readonly test: (name: string, run: () => Promise<void>) => unknown
  /**
   * Creates an empty store. Called once for each test; the test closes the store when it ends. The stores of two tests
   * can share a database if `create` removes all plants from it.
   */
  readonly create: () => MaybePromise<S>
  /**
   * Makes every create and delete of a store fail until `restore` is called, for example by locking its file. With this
   * option, which requires `restore`, the suite also tests how the store handles failed writes.
   */
  readonly breakWrites?: ((store: S) => unknown) | undefined
  /** Makes the store's writes work again, at the latest when the promise that it returns resolves. */
  readonly restore?: ((store: S) => unknown) | undefined
}

/**
 * Registers the tests that check whether a store meets the requirements of {@link Store}. If a test fails, its error
 * contains the call, what the call returned, and what it should have returned. A call fails after 10 s, the default of
 * the service's `storeTimeoutMs`.
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
  const { test, create, breakWrites, restore } = options
  for (const [name, run] of Object.entries({ ...CHECKS, ...(breakWrites && FAILURE_CHECKS) })) {
    test(name, async () => {
      const created = await waitFor('The create option', create)
      const store = new TestedStore(created)
      async function whileBroken<T>(callback: () => Promise<T>): Promise<T> {
        await waitFor('The breakWrites option', () => breakWrites!(created))
        return callback().finally(() => waitFor('The restore option', () => restore!(created)))
      }
      try {
        const page = (await store.call('list', 'owner', { limit: 1, maxBytes: 1 })) as Partial<Page> | undefined
        assert.ok(!page?.plants?.length, `create must return an empty store, not one with ${quote(page?.plants?.[0])}.`)
        await run(store, whileBroken)
      } catch (error) {
        // A broken store may also fail to close. Report only the first error.
        await store.call('close').catch(() => undefined)
        throw error
      }
      await store.call('close')
    })
  }
}
