import type { Plant } from '../plants/plant.ts'

/** The most plants that one statement of Postgres creates or deletes, unless somebody sets another number. */
export const POSTGRES_BATCH = 128

/** From this many characters on, a batch takes no more: in one piece, large plants would hold up everybody. */
const MAX_LENGTH = 2 ** 20

/** How many of the writes that wait share the next batch: 1 to `max`, by how many characters each writes. */
export function batchSize(waiting: readonly { readonly length: number }[], max: number): number {
  let size = 0
  for (let length = 0; size < Math.min(waiting.length, max) && length < MAX_LENGTH; size++) {
    length += waiting[size]!.length
  }
  return size
}

/** How many characters the create of a plant writes. */
export function textLength({ name, tag = '' }: Plant): number {
  return name.length + tag.length
}
