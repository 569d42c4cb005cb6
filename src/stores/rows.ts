import { TEXT_NAMES, type NewPlant, type Plant } from '../plants/plant.ts'

/** The columns of a plant's texts, for SQL. */
export const TEXTS: string = TEXT_NAMES.join(', ')
export const COLUMNS = `owner, id, ${TEXTS}`

/** The values of the text columns. A text that is absent is null. */
export type TextValues = readonly (string | null)[]

export const toTextValues = (plant: Plant): TextValues => TEXT_NAMES.map((name) => plant[name] ?? null)

export function toPlant(id: bigint, values: TextValues): NewPlant {
  const plant: { id: bigint } & { -readonly [Name in keyof Plant]?: string } = { id }
  for (const [i, name] of TEXT_NAMES.entries()) if (values[i] !== null) plant[name] = values[i]!
  return plant as NewPlant
}
