import { channel } from 'node:diagnostics_channel'

/** The diagnostics channel that is told of each batch, as a {@link Batch}. */
export const BATCHES = 'plant-store.batch'

/** Operations that shared a statement or a commit. */
export interface Batch {
  /** How many they are. */
  readonly size: number
}

const batches = channel(BATCHES)

/** Tells of a batch; that costs nothing if nobody listens. */
export function reportBatch(size: number): void {
  if (batches.hasSubscribers) batches.publish({ size } satisfies Batch)
}
