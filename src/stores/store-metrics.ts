import type { Store } from '../plants/store.ts'

/** What a store tells the metrics of a program, beside what its methods return. */
export interface StoreMetrics {
  gauges: readonly (readonly [name: string, help: string, read: () => number])[]
  onBatch: (size: number) => void
}

const metricsByStore = new WeakMap<Store, StoreMetrics>()

/** The figures of a store. One that stands before another may be given those of the other. */
export function metricsOf(
  store: Store,
  initial: StoreMetrics = { gauges: [], onBatch: () => undefined },
): StoreMetrics {
  if (!metricsByStore.has(store)) metricsByStore.set(store, initial)
  return metricsByStore.get(store)!
}
