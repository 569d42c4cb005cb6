import { isPromiseLike } from '../../maybe-promise.ts'
import { STORE_METHODS } from '../../plants/checked-store.ts'
import { listEncoded, plainList } from '../../plants/encoded-list.ts'
import { StoreUnavailableError, type Store, type StoreMethod } from '../../plants/store.ts'
import { figuresOf } from '../../stores/figures.ts'
import { performance } from '../../timers.ts'
import { createHistogram, single, type Family, type Observe } from './families.ts'

const OUTCOMES = ['ok', 'unavailable', 'unknown', 'fault'] as const
type Outcome = (typeof OUTCOMES)[number]

const METHODS = Object.keys(STORE_METHODS).filter((name) => name !== 'close') as WatchedMethod[]
type WatchedMethod = Exclude<StoreMethod, 'close'>

type AllSeries = Readonly<Record<WatchedMethod, Readonly<Record<Outcome, Observe>>>>

export function createStoreMetrics(): { readonly families: readonly Family[]; watch(store: Store): Store } {
  const durations = createHistogram('plant_store_store_call_duration_seconds', 'How long the store took.')
  let active = 0
  const batchSizes = createHistogram(
    'plant_store_store_batch_size',
    'How many operations shared a statement or a commit.',
    [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000],
  )
  const observeBatch = batchSizes.addSeries({})

  const seriesOf = (operation: string): object =>
    Object.fromEntries(OUTCOMES.map((outcome) => [outcome, durations.addSeries({ operation, outcome })]))
  const series = Object.fromEntries(METHODS.map((name) => [name, seriesOf(name)])) as AllSeries

  function count<T>(operation: WatchedMethod, call: () => T): T {
    const startedAt = performance.now()
    active++
    function settle(outcome: Outcome): void {
      active--
      series[operation][outcome]((performance.now() - startedAt) / 1000)
    }
    const fail = (error: unknown): void => settle(outcomeOf(error))
    try {
      const result = call()
      if (isPromiseLike(result)) result.then(() => settle('ok'), fail)
      else settle('ok')
      return result
    } catch (error) {
      fail(error)
      throw error
    }
  }

  return {
    families: [
      durations,
      single('gauge', 'plant_store_store_active_calls', 'Calls of the store that have not ended.', () => active),
      batchSizes,
    ],
    watch(store) {
      figuresOf(store).onBatch = observeBatch
      const watched = {} as Store
      for (const operation of METHODS) {
        const call = store[operation]?.bind(store) as ((...args: unknown[]) => unknown) | undefined
        if (call === undefined) continue
        Reflect.set(watched, operation, (...args: unknown[]) => count(operation, () => call(...args)))
      }
      watched.list = plainList((owner, request) => count('list', () => listEncoded(store, owner, request)))
      return watched
    },
  }
}

function outcomeOf(error: unknown): Outcome {
  if (!(error instanceof StoreUnavailableError)) return 'fault'
  return error.isOutcomeUnknown ? 'unknown' : 'unavailable'
}
