import type { NewPlant as ListedPlant } from '../plants/plant.ts'

export type { ListedPlant }

/** A plant to create. */
export interface NewPlant extends Omit<ListedPlant, 'id'> {
  /** A `bigint` of at most 64 bits or a safe integer, unique among the owner's plants. */
  readonly id: bigint | number
}

type Texts = Omit<ListedPlant, 'id'>

/** The texts of a plant, and whether each of them is required. The client imports only types from the service. */
const IS_REQUIRED: Readonly<Record<keyof Texts, boolean>> = { name: true, tag: false }
const TEXT_NAMES = Object.keys(IS_REQUIRED) as readonly (keyof Texts)[]

/**
 * Matches an id in a JSON list. The pattern can't match inside a string, because quotes are escaped there: an unescaped
 * quote that is followed by a colon always ends a key.
 */
const ID = /"id"\s*:\s*(-?(?:0|[1-9]\d{0,18}))(?=\s*[,}])/g

/**
 * Converts an id to a bigint.
 * @throws RangeError for anything but a bigint or a safe integer, because other numbers may already have been rounded
 */
export function toExactId(id: bigint | number): bigint {
  if (typeof id !== 'bigint' && !Number.isSafeInteger(id)) {
    throw new RangeError('an id must be a bigint or a safe integer: numbers beyond 2^53 are rounded')
  }
  return BigInt(id)
}

/** Whether two plants are identical, apart from their ids. */
export function isSamePlant(a: Texts, b: Texts): boolean {
  return TEXT_NAMES.every((name) => a[name] === b[name])
}

/**
 * Encodes a new plant. `JSON.stringify` rejects bigints, and doubles can't represent every id, so this function inserts
 * the id's digits into the JSON.
 */
export function encodePlant(id: bigint, plant: NewPlant): string {
  const texts = Object.fromEntries(TEXT_NAMES.map((name) => [name, plant[name]]))
  // The first 0 is a placeholder for the id.
  return JSON.stringify({ id: 0, ...texts }).replace('0', String(id))
}

/**
 * Parses a list without rounding its ids: before `JSON.parse` can round an id, the id is replaced with an index into
 * an array of bigints.
 * @returns the plants, or undefined if the text isn't a list of plants with ascending ids, all of them above `after`
 * @throws SyntaxError if the text isn't JSON, for example because it's truncated
 */
export function parsePlants(text: string, after?: bigint): ListedPlant[] | undefined {
  const ids: bigint[] = []
  const list = JSON.parse(text.replace(ID, (_, digits: string) => `"id":${ids.push(BigInt(digits)) - 1}`)) as unknown
  if (!Array.isArray(list) || list.length !== ids.length) return undefined
  const plants: ListedPlant[] = []
  for (const [index, id] of ids.entries()) {
    const members = (list[index] ?? {}) as Readonly<Record<string, unknown>>
    const isAbsent = (name: keyof Texts): boolean => members[name] === undefined && !IS_REQUIRED[name]
    const isPlant =
      members['id'] === index && TEXT_NAMES.every((name) => isAbsent(name) || typeof members[name] === 'string')
    const previousId = plants.at(-1)?.id ?? after
    if (!isPlant || (previousId !== undefined && id <= previousId)) return undefined
    const texts = TEXT_NAMES.flatMap((name) => (isAbsent(name) ? [] : [[name, members[name]]]))
    plants.push({ id, ...(Object.fromEntries(texts) as Texts) })
  }
  return plants
}
