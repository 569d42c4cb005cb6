import { tagOf, type Plant } from '../plants/plant.ts'

/** The most plants that one statement of Postgres creates or deletes, unless somebody sets another number. */
export const POSTGRES_BATCH = 128

/** A write that waits for a batch. */
export interface WaitingWrite<Write, Result> {
  readonly write: Write
  readonly length: number
  readonly expiresAt: number
  readonly resolve: (result: Result) => void
  readonly reject: (reason: unknown) => void
}

/** From this many characters on, a batch takes no more: in one piece, large plants would hold up everybody. */
const MAX_LENGTH = 2 ** 20

/** How many of the writes that wait share the next batch: 1 to `max`. */
export function batchSize(waiting: readonly { readonly length: number }[], max: number): number {
  let size = 0
  for (let length = 0; size < Math.min(waiting.length, max) && length < MAX_LENGTH; size++) {
    length += waiting[size]!.length
  }
  return size
}

export const textLength = (plant: Plant): number => plant.name.length + (tagOf(plant)?.length ?? 0)
