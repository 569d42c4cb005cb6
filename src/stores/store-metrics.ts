import type { Store } from '../legacy/plants/store.ts'

/** Metrics that a store provides to the standalone server. */
interface StoreMetrics {
  /** Gauges that are read for each scrape. */
  gauges: readonly (readonly [name: string, help: string, read: () => number])[]
  /** Called with the number of writes in each batch. */
  onBatch: (size: number) => void
}

const metricsByStore = new WeakMap<Store, StoreMetrics>()

/**
 * Returns the metrics of a store.
 * @param initial the metrics to assign to a store that has none yet; a wrapper passes the metrics of the wrapped store
 */
export function metricsOf(
  store: Store,
  initial: StoreMetrics = { gauges: [], onBatch: () => undefined },
): StoreMetrics {
  if (!metricsByStore.has(store)) metricsByStore.set(store, initial)
  return metricsByStore.get(store)!
}
