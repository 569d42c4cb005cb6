import { tagOf, type Plant } from '../plants/plant.ts'

/** The most plants that one statement of Postgres creates or deletes, unless somebody sets another number. */
export const DEFAULT_POSTGRES_BATCH = 128

/** A write that waits for a batch. */
export interface QueuedWrite<Write, Result> {
  readonly write: Write
  readonly length: number
  readonly expiresAt: number
  readonly resolve: (result: Result) => void
  readonly reject: (reason: unknown) => void
}

/** From this many characters on, a batch takes no more: in one piece, large plants would hold up everybody. */
const MAX_BATCH_LENGTH = 2 ** 20

/** How many of the writes that wait share the next batch: 1 to `max`. */
export function nextBatchSize(queue: readonly { readonly length: number }[], maxSize: number): number {
  let size = 0
  for (let length = 0; size < Math.min(queue.length, maxSize) && length < MAX_BATCH_LENGTH; size++) {
    length += queue[size]!.length
  }
  return size
}

export const textLength = (plant: Plant): number => plant.name.length + (tagOf(plant)?.length ?? 0)
