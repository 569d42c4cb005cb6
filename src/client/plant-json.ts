/** A plant in a list. */
export interface ListedPlant {
  /** Identifies the plant among the plants of its owner: any 64-bit integer. */
  readonly id: bigint
  /** The name of the plant; can be empty. */
  readonly name: string
  /** The type of the plant, such as `tropical`. */
  readonly tag?: string | undefined
}

/** A plant to create. */
export interface NewPlant extends Omit<ListedPlant, 'id'> {
  /** Identifies the plant among the plants of its owner: a `bigint` of at most 64 bits, or a safe integer. */
  readonly id: bigint | number
}

/**
 * Matches an id in a JSON list. The pattern can't match inside a string: there, every quote is escaped, so only the key
 * of a member can end with an unescaped quote and a colon.
 */
const ID = /"id"\s*:\s*(-?(?:0|[1-9]\d{0,18}))(?=\s*[,}])/g

/**
 * Converts an id to a bigint.
 * @throws RangeError for anything but a bigint or a safe integer, because the number might have been rounded already
 */
export function toExactId(id: bigint | number): bigint {
  if (typeof id !== 'bigint' && !Number.isSafeInteger(id)) {
    throw new RangeError('an id must be a bigint or a safe integer: numbers beyond 2^53 are rounded')
  }
  return BigInt(id)
}

/** Encodes a new plant. Neither `JSON.stringify` nor a double can represent every id, so its digits are inserted. */
export function encodePlant(id: bigint, { name, tag }: NewPlant): string {
  // The first 0 is a placeholder for the id.
  return JSON.stringify({ id: 0, name, tag }).replace('0', String(id))
}

/**
 * Parses a list without rounding its ids: each id is replaced by its index before `JSON.parse` can round it.
 * @returns the plants, or undefined if the text isn't a list of plants with ids, in ascending order
 * @throws SyntaxError if the text isn't JSON, for example because it's truncated
 */
export function parsePlants(text: string): ListedPlant[] | undefined {
  const ids: bigint[] = []
  const list = JSON.parse(text.replace(ID, (_, digits: string) => `"id":${ids.push(BigInt(digits)) - 1}`)) as unknown
  if (!Array.isArray(list) || list.length !== ids.length) return undefined
  const plants: ListedPlant[] = []
  for (const [index, item] of list.entries()) {
    const { id, name, tag } = (item ?? {}) as Readonly<Record<string, unknown>>
    const isPlant = id === index && typeof name === 'string' && (tag === undefined || typeof tag === 'string')
    if (!isPlant || (index > 0 && ids[index]! <= ids[index - 1]!)) return undefined
    plants.push({ id: ids[index]!, name, ...(tag !== undefined && { tag }) })
  }
  return plants
}
