import type { Store } from '../plants/store.ts'

/** A figure of a store, among the metrics of a program. */
export interface Gauge {
  readonly name: string
  /** Describes the value, in a sentence. */
  readonly help: string
  readonly read: () => number
}

const gauges = new WeakMap<Store, readonly Gauge[]>()

/** Gives a store figures of its own. */
export function addGauges(store: Store, added: readonly Gauge[]): void {
  gauges.set(store, added)
}

/** The figures that a store has of its own. */
export function gaugesOf(store: Store): readonly Gauge[] {
  return gauges.get(store) ?? []
}
