import type { NewPlant } from '../legacy/plants/plant.ts'
import { StoreUnavailableError } from '../legacy/plants/store.ts'
import { assertDelete, assertList, createAll, plantsOf, quote, type ConformanceCheck } from './assertions.ts'

const PLANTS = plantsOf(Array.from({ length: 20 }, (_, i) => BigInt(i)))

/** Checks for a store whose writes fail temporarily. */
export const FAILURE_CHECKS: Readonly<Record<string, ConformanceCheck>> = {
  async 'stores no plants when creates fail'(store, { whileBroken }) {
    const [existing, ...plants] = PLANTS as [NewPlant, ...NewPlant[]]
    await createAll(store, 'owner', [existing])
    const uncertain = await whileBroken(() => requireFailures(plants, (plant) => store.create('owner', plant)))
    for (const { id } of uncertain) await store.delete('owner', id)
    await assertList(store, 'owner', [existing])
    await createAll(store, 'owner', plants)
    await assertList(store, 'owner', PLANTS)
  },

  async 'keeps the plants when deletes fail'(store, { whileBroken }) {
    await createAll(store, 'owner', PLANTS)
    const uncertain = await whileBroken(() => requireFailures(PLANTS, ({ id }) => store.delete('owner', id)))
    for (const plant of uncertain) await store.create('owner', plant)
    await assertList(store, 'owner', PLANTS)
    for (const { id } of PLANTS) await assertDelete(store, 'owner', id)
    await assertList(store, 'owner', [])
  },

  async 'ping rejects while writes fail, if the store implements ping'(store, { whileBroken, hasPing }) {
    await whileBroken(async () => {
      await requireFailures(PLANTS, (plant) => store.create('owner', plant))
      const [{ status }] = await Promise.allSettled([store.ping()])
      if (hasPing && status === 'fulfilled') throw new Error('ping() succeeded, although writes fail. It must reject.')
    })
    // A store may need a successful write to detect that writes work again.
    await store.create('another', PLANTS[0]!)
    await store.ping()
  },
}

/**
 * Asserts that a write of each plant fails with a `StoreUnavailableError`. Returns the plants whose write has an
 * unknown outcome.
 */
async function requireFailures(
  plants: readonly NewPlant[],
  write: (plant: NewPlant) => Promise<unknown>,
): Promise<NewPlant[]> {
  const outcomes = await Promise.allSettled(plants.map(write))
  return plants.filter((plant, i) => {
    const outcome = outcomes[i]!
    if (outcome.status === 'fulfilled') {
      throw new Error(
        `A write of ${quote(plant)} returned ${quote(outcome.value)}, although breakWrites had been called.`,
      )
    }
    const { message, cause } = outcome.reason as Error
    if (cause instanceof StoreUnavailableError) return cause.isOutcomeUnknown
    throw new Error(`${message}, which is not a StoreUnavailableError.`, { cause })
  })
}
