import { ListSlots } from '../../../src/plants/list-slots.ts'
import type { PlantSource } from '../../../src/plants/listing.ts'

/** The plants of ada, for whose lists nobody waits, and whose client stays. */
export function plantSource(readPage: PlantSource['readPage']): PlantSource {
  return { owner: 'ada', slots: new ListSlots(1, 60_000), readPage, isGone: () => false, whenGone: () => undefined }
}
