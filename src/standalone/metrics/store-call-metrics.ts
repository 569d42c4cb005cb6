import { isPromiseLike } from '../../legacy/maybe-promise.ts'
import { STORE_METHODS } from '../../legacy/plants/checked-store.ts'
import { listEncodedPlants, wrapEncodedList } from '../../legacy/plants/encoded-list.ts'
import { StoreUnavailableError, type Store, type StoreMethod } from '../../legacy/plants/store.ts'
import { metricsOf } from '../../stores/store-metrics.ts'
import { performance } from '../../legacy/timers.ts'
import { createHistogram, createSingleMetric, type MetricFamily, type Observe } from './metric-families.ts'

const OUTCOMES = ['ok', 'unavailable', 'unknown', 'fault'] as const
type Outcome = (typeof OUTCOMES)[number]

const MEASURED_METHODS = Object.keys(STORE_METHODS).filter((name) => name !== 'close') as MeasuredMethod[]
type MeasuredMethod = Exclude<StoreMethod, 'close'>

type SeriesByMethod = Readonly<Record<MeasuredMethod, Readonly<Record<Outcome, Observe>>>>

/** Creates the metrics of store calls. `instrument()` wraps a store so that its calls are measured. */
export function createStoreCallMetrics(): {
  readonly families: readonly MetricFamily[]
  instrument(store: Store): Store
} {
  const durations = createHistogram('plant_store_store_call_duration_seconds', 'Duration of store calls.')
  let activeCalls = 0
  const batchSizes = createHistogram(
    'plant_store_store_batch_size',
    'Number of operations that shared a statement or a commit.',
    [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000],
  )
  const observeBatch = batchSizes.addSeries({})

  const createSeries = (operation: string): object =>
    Object.fromEntries(OUTCOMES.map((outcome) => [outcome, durations.addSeries({ operation, outcome })]))
  const seriesByMethod = Object.fromEntries(
    MEASURED_METHODS.map((name) => [name, createSeries(name)]),
  ) as SeriesByMethod

  function measureCall<T>(operation: MeasuredMethod, call: () => T): T {
    const startedAt = performance.now()
    activeCalls++
    function recordOutcome(outcome: Outcome): void {
      activeCalls--
      seriesByMethod[operation][outcome]((performance.now() - startedAt) / 1000)
    }
    const recordError = (error: unknown): void => recordOutcome(classifyOutcome(error))
    try {
      const result = call()
      if (isPromiseLike(result)) result.then(() => recordOutcome('ok'), recordError)
      else recordOutcome('ok')
      return result
    } catch (error) {
      recordError(error)
      throw error
    }
  }

  return {
    families: [
      durations,
      createSingleMetric('gauge', 'plant_store_store_active_calls', 'Store calls in progress.', () => activeCalls),
      batchSizes,
    ],
    instrument(store) {
      metricsOf(store).onBatch = observeBatch
      const instrumented = {} as Store
      for (const operation of MEASURED_METHODS) {
        const call = store[operation]?.bind(store) as ((...args: unknown[]) => unknown) | undefined
        if (call === undefined) continue
        Reflect.set(instrumented, operation, (...args: unknown[]) => measureCall(operation, () => call(...args)))
      }
      instrumented.list = wrapEncodedList((owner, request) =>
        measureCall('list', () => listEncodedPlants(store, owner, request)),
      )
      return instrumented
    },
  }
}

function classifyOutcome(error: unknown): Outcome {
  if (!(error instanceof StoreUnavailableError)) return 'fault'
  return error.isOutcomeUnknown ? 'unknown' : 'unavailable'
}
