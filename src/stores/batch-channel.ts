import { channel } from 'node:diagnostics_channel'

/** The diagnostics channel that gets each {@link Batch}. */
export const BATCHES = 'plant-store.batch'

/** Creates and deletes that shared a statement or a commit. */
export interface Batch {
  readonly size: number
}

const batches = channel(BATCHES)

/** Publishes a batch, if anybody listens. */
export function reportBatch(size: number): void {
  if (batches.hasSubscribers) batches.publish({ size } satisfies Batch)
}
