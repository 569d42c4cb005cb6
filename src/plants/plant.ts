/** A plant without its `id`, as in responses. */
export interface Plant {
  /** Any well-formed Unicode without U+0000; may be empty. */
  readonly name: string
  /** The type of the plant, such as `tropical`. May be any text that would be valid as a name. */
  readonly tag?: string | undefined
}

/** A plant with its `id`, as it is created and stored. */
export interface NewPlant extends Plant {
  /** Identifies the plant among the plants of its owner: any int64. */
  readonly id: bigint
}

/**
 * The texts of a plant, in the order of responses. Validation, the columns of the stores and the interface description
 * derive from this table.
 */
export const PLANT_TEXTS: Readonly<
  Record<keyof Plant, { readonly isRequired: boolean; readonly description: string; readonly example: string }>
> = {
  name: { isRequired: true, description: 'The name of the plant.', example: 'Monstera deliciosa' },
  tag: { isRequired: false, description: 'A tag that specifies the type of the plant.', example: 'tropical' },
}
export const TEXT_NAMES = Object.keys(PLANT_TEXTS) as readonly (keyof Plant)[]

export const MIN_INT64: bigint = -(2n ** 63n)
export const MAX_INT64: bigint = 2n ** 63n - 1n

export const isInt64 = (value: bigint): boolean => MIN_INT64 <= value && value <= MAX_INT64

export const INT64_DESCRIPTION = `a decimal integer from ${MIN_INT64} to ${MAX_INT64}, without leading zeros`

/** Parses a decimal int64 such as `42`. Returns undefined for anything else: `01`, `+1`, `1.0`, a space, 2^63. */
export function parseInt64(text: string): bigint | undefined {
  // Converting a million digits to a bigint would take quadratic time.
  if (text.length > 20 || !/^-?(?:0|[1-9][0-9]*)$/.test(text)) return undefined
  const value = BigInt(text)
  return isInt64(value) ? value : undefined
}

export const TEXT_DESCRIPTION = 'well-formed Unicode without U+0000'

/** Whether a value is a string that every store can preserve unchanged. */
export const isValidText = (value: unknown): value is string =>
  typeof value === 'string' && value.isWellFormed() && !value.includes('\0')

/** The key of an encoding in a plant. Plants of a custom store can have further members with any name. */
export const ENCODING: unique symbol = Symbol('plant-store.encoding')

/** A plant that can be encoded once, for all lists that contain it. */
export interface EncodedPlant extends NewPlant {
  [ENCODING]?: Encoding | undefined
}

/** A plant with its JSON as in responses, without the id, and the sizes of the JSON and of its strings in UTF-8. */
export type Encoding = Readonly<{ plant: NewPlant; json: string; bytes: number; textBytes: number }>

/** Returns the encoding of a plant. A store that wraps another one can return copies, which have other strings. */
export function encodingOf(plant: EncodedPlant): Encoding | undefined {
  const encoding = plant[ENCODING]
  return encoding?.plant === plant ? encoding : undefined
}

/** Encodes a plant as JSON. The id is written separately, because `JSON.stringify` rejects bigints. */
export function encodePlant(plant: EncodedPlant, includesId: boolean): string {
  const json = encodingOf(plant)?.json ?? encodeTexts(plant)
  return includesId ? `{"id":${plant.id},${json.slice(1)}` : json
}

/** Matches ASCII without escapes, as most texts are. `JSON.stringify` would take 0.1 µs more for a plant. */
const UNESCAPED = /^[ !#-[\]-~]*$/

/** Checks the types, because a plant of a custom store could have others. */
function encodeTexts(plant: Readonly<Partial<Record<keyof Plant, unknown>>>): string {
  let members = ''
  for (const name of TEXT_NAMES) {
    const text = plant[name]
    if (text === undefined && !PLANT_TEXTS[name].isRequired) continue
    if (typeof text !== 'string') throw new TypeError(`the ${name} of a plant must be a string`)
    members += `${members && ','}"${name}":${UNESCAPED.test(text) ? `"${text}"` : JSON.stringify(text)}`
  }
  return `{${members}}`
}
