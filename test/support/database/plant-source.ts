import { MAX_PAGE, type NewPlant } from '../../../src/index.ts'
import { ListSlots } from '../../../src/plants/list-slots.ts'
import type { PlantSource } from '../../../src/plants/listing.ts'

/** The plants of ada, for whose lists nobody waits, and whose client stays. */
export function plantSource(readPage: PlantSource['readPage']): PlantSource {
  return { owner: 'ada', slots: new ListSlots(1, 60_000), readPage, isGone: () => false, whenGone: () => undefined }
}

/** A page of plants after a cursor; there is always a next one. */
export function pageAfter(after = 0n, name = 'Fern'): NewPlant[] {
  return Array.from({ length: MAX_PAGE }, (_, i) => ({ id: after + BigInt(i) + 1n, name }))
}
