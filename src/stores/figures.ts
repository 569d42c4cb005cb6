import type { Store } from '../plants/store.ts'

/** What a store tells the metrics of a program, beside what its methods return. */
export interface Figures {
  gauges: readonly Gauge[]
  /** Is told how many creates and deletes have shared a statement or a commit. */
  onBatch: (size: number) => void
}

/** A value that is looked up when it is asked for. */
export interface Gauge {
  readonly name: string
  /** Describes the value, in a sentence. */
  readonly help: string
  readonly read: () => number
}

const figures = new WeakMap<Store, Figures>()

/** The figures of a store. One that stands before another may be given those of the other. */
export function figuresOf(store: Store, own: Figures = { gauges: [], onBatch: () => undefined }): Figures {
  if (!figures.has(store)) figures.set(store, own)
  return figures.get(store)!
}
