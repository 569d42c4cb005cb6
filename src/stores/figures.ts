import type { Store } from '../plants/store.ts'

/** What a store tells the metrics of a program, beside what its methods return. */
export interface Figures {
  gauges: readonly (readonly [name: string, help: string, read: () => number])[]
  onBatch: (size: number) => void
}

const figures = new WeakMap<Store, Figures>()

/** The figures of a store. One that stands before another may be given those of the other. */
export function figuresOf(store: Store, own: Figures = { gauges: [], onBatch: () => undefined }): Figures {
  if (!figures.has(store)) figures.set(store, own)
  return figures.get(store)!
}
