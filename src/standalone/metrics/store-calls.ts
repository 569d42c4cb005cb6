import { subscribe } from 'node:diagnostics_channel'
import { STORE_METHODS } from '../../plants/checked-store.ts'
import { addShortLists, shortListsOf } from '../../plants/short-list.ts'
import { StoreUnavailableError, type Store } from '../../plants/store.ts'
import { BATCHES, type Batch } from '../../stores/batch-channel.ts'
import { Histogram, SECONDS, single, type Family, type Series } from './families.ts'

/** How a call ended: with a result, or with an error that says what became of the call. */
const OUTCOMES = ['ok', 'unavailable', 'unknown', 'fault'] as const
type Outcome = (typeof OUTCOMES)[number]

/** The methods whose calls are counted. */
const OPERATIONS = Object.keys(STORE_METHODS).filter((name) => name !== 'close') as Exclude<keyof Store, 'close'>[]
type Operation = (typeof OPERATIONS)[number]

type OperationSeries = Readonly<Record<Outcome, Series>>

/** Counts and times of the calls of a store. */
export interface StoreMetrics {
  readonly families: readonly Family[]
  /** The store, with its calls counted. */
  watch(store: Store): Store
}

export function createStoreMetrics(): StoreMetrics {
  const durations = new Histogram(
    'plant_store_store_call_duration_seconds',
    'How long the store took, by operation and outcome.',
    SECONDS,
  )
  let active = 0
  const batchSizes = new Histogram(
    'plant_store_store_batch_size',
    'How many operations shared a statement or a commit.',
    [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000],
  )
  const batches = batchSizes.addSeries({})
  subscribe(BATCHES, (batch) => batches.observe((batch as Batch).size))

  function addSeries(operation: Operation): OperationSeries {
    return Object.fromEntries(
      OUTCOMES.map((outcome) => [outcome, durations.addSeries({ operation, outcome })]),
    ) as OperationSeries
  }
  const series = Object.fromEntries(OPERATIONS.map((name) => [name, addSeries(name)])) as Record<
    Operation,
    OperationSeries
  >

  /** Counts a call, which may return its result at once. */
  function count<T>(ofOperation: OperationSeries, call: () => T): T {
    const startedAt = performance.now()
    active++
    function end(outcome: Outcome): void {
      active--
      observe(ofOperation[outcome], startedAt)
    }
    let result: T
    try {
      result = call()
    } catch (error) {
      end(outcomeOf(error))
      throw error
    }
    if (result instanceof Promise) {
      result.then(
        () => end('ok'),
        (error: unknown) => end(outcomeOf(error)),
      )
    } else {
      end('ok')
    }
    return result
  }

  return {
    families: [
      durations,
      single('gauge', 'plant_store_store_active_calls', 'Calls of the store that have not ended.', () => active),
      batchSizes,
    ],
    watch(store) {
      // The other methods pass through.
      const watched = Object.create(store) as Store
      for (const operation of OPERATIONS) {
        const call = store[operation]?.bind(store) as ((...args: unknown[]) => unknown) | undefined
        if (call === undefined) continue
        Reflect.set(watched, operation, (...args: unknown[]) => count(series[operation], () => call(...args)))
      }
      const listShort = shortListsOf(store)
      if (listShort !== undefined) {
        addShortLists(watched, (owner, query) => {
          const startedAt = performance.now()
          const list = listShort(owner, query)
          // A list that does not fit a page is asked for once more, and counted then.
          if (list !== undefined) observe(series.list.ok, startedAt)
          return list
        })
      }
      return watched
    },
  }
}

function observe(series: Series, startedAt: number): void {
  series.observe((performance.now() - startedAt) / 1000)
}

function outcomeOf(error: unknown): Outcome {
  if (!(error instanceof StoreUnavailableError)) return 'fault'
  return error.isOutcomeUnknown ? 'unknown' : 'unavailable'
}
