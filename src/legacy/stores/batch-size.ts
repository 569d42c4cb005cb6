import { tagOf, type Plant } from '../plants/plant.ts'

/** The default for the maximum number of plants that one Postgres statement creates or deletes. */
export const DEFAULT_POSTGRES_BATCH = 128

/** A create or delete that is waiting to become part of a batch. */
export interface QueuedWrite<Write, Result> {
  readonly write: Write
  /** The length of the plant's name and tag, in characters. */
  readonly length: number
  /** A `performance.now()` time. */
  readonly expiresAt: number
  readonly resolve: (result: Result) => void
  readonly reject: (reason: unknown) => void
}

/**
 * A batch is full once its names and tags have this many characters, because a huge batch would delay every other
 * request.
 */
const MAX_BATCH_LENGTH = 2 ** 20

/** Returns how many of the queued writes the next batch contains: 1 to `maxSize`, or 0 if the queue is empty. */
export function nextBatchSize(queue: readonly { readonly length: number }[], maxSize: number): number {
  let size = 0
  for (let length = 0; size < Math.min(queue.length, maxSize) && length < MAX_BATCH_LENGTH; size++) {
    length += queue[size]!.length
  }
  return size
}

/** Returns the number of characters in the name and tag of a plant. */
export const textLength = (plant: Plant): number => plant.name.length + (tagOf(plant)?.length ?? 0)
