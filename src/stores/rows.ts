import { ENCODING, TEXT_NAMES, type EncodedPlant, type NewPlant, type Plant } from '../plants/plant.ts'
import { byteLengthOf, encode, type Page, type PageRequest } from '../plants/store.ts'

/** The columns of a plant's texts, for SQL. */
export const TEXTS: string = TEXT_NAMES.join(', ')
export const COLUMNS = `owner, id, ${TEXTS}`

/** The values of the text columns. A text that is absent is null. */
export type TextValues = readonly (string | null)[]

export const toTextValues = (plant: Plant): TextValues => TEXT_NAMES.map((name) => plant[name] ?? null)

/** A plant as a SELECT of its id and {@link TEXTS} returns it. */
export type SelectedRow = readonly [id: bigint | string, ...texts: TextValues]

/** Fills a page with rows. A row after the end of the page reveals that the owner has more plants. */
export function toPage(rows: Iterable<SelectedRow>, { limit, maxBytes }: PageRequest): Page {
  const plants: NewPlant[] = []
  let bytes = 0
  for (const [id, ...texts] of rows) {
    if (plants.length === limit || bytes >= maxBytes) return { plants, hasMore: true }
    const plant: { id: bigint } & { -readonly [Name in keyof Plant]?: string } = { id: BigInt(id) }
    for (let i = 0; i < texts.length; i++) if (texts[i] !== null) plant[TEXT_NAMES[i]!] = texts[i]!
    plants.push(plant as NewPlant)
    bytes += byteLengthOf(plant as NewPlant)
  }
  return { plants, hasMore: false }
}

/** Encodes the plants of a page, once for all lists that share it. */
export function encodePlants(page: Page): Page {
  for (const plant of page.plants as readonly EncodedPlant[]) plant[ENCODING] ??= encode(plant)
  return page
}
