import { hasOption } from '../option-checks.ts'
import { decodeUtf8, encodeUtf8 } from './text.ts'

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
 * Creates a plant. Without a tag, the plant has no `tag` member, because some databases reject undefined. The exception
 * is prototype pollution: if `Object.prototype` has a `tag`, the plant gets its own undefined `tag`, so that it doesn't
 * inherit that of `Object.prototype`.
 */
export function createPlant(id: bigint, name: string, tag: string | undefined): NewPlant {
  if (tag !== undefined) return { id, name, tag }
  const plant: NewPlant = { id, name }
  return plant.tag === undefined ? plant : { id, name, tag: undefined }
}

/** Returns the tag of a plant. Ignores a tag that is inherited from `Object.prototype`. */
export function tagOf(plant: Plant): string | undefined {
  const { tag } = plant
  return tag === undefined || hasOption(plant, 'tag') ? tag : undefined
}

/** A plant that is already encoded as JSON, for lists. */
export class EncodedPlant {
  readonly id: bigint
  /** The text that {@link encodeFields} returns, such as `"name":"Fern"},{`. */
  readonly json: string

  constructor(id: bigint, json: string) {
    this.id = id
    this.json = json
  }
}

export function decodePlant(plant: EncodedPlant | NewPlant): NewPlant {
  if (!(plant instanceof EncodedPlant)) return plant
  const members = JSON.parse(decodeUtf8(closeObject(`{${plant.json}`))) as Plant
  return createPlant(plant.id, members.name, tagOf(members))
}

/** Separates two plants in a list. Includes the opening brace of the second plant. */
export const SEPARATOR = ',{'

/** Removes the separator at the end of a plant's text: `"name":"Fern"},{` becomes `"name":"Fern"}`. */
export const closeObject = (json: string): string => json.slice(0, -SEPARATOR.length)

/**
 * Encodes the name and tag of a plant as JSON: `"name":"Fern","tag":"indoor"},{`. The opening brace is missing because
 * a list may insert an id after the brace. The separator is included so that a list appends one string for each plant
 * instead of two. The text is in UTF-8, with one character per byte.
 */
export function encodeFields(plant: EncodedPlant | NewPlant): string {
  if (plant instanceof EncodedPlant) return plant.json
  const { name } = plant
  const tag = tagOf(plant)
  if (tag === undefined) return encodeUtf8(`"name":${encodeText(name)}}${SEPARATOR}`)
  return encodeUtf8(`"name":${encodeText(name)},"tag":${encodeText(tag)}}${SEPARATOR}`)
}

/** Counts the bytes of a plant's name and tag in UTF-8. @param json the text that {@link encodeFields} returned */
export function countTextBytes(json: string): number {
  // Quotes in a name are escaped, so this text can't be part of a name.
  const hasTag = json.includes('","tag":"')
  let bytes = json.length - (hasTag ? '"name":"","tag":""},{' : '"name":""},{').length
  const firstEscape = json.indexOf('\\')
  if (firstEscape === -1) return bytes
  for (let index = firstEscape, length; index < json.length; index += length) {
    length = json[index] !== '\\' ? 1 : json[index + 1] === 'u' ? 6 : 2
    bytes -= length - 1
  }
  return bytes
}

/** ASCII characters that JSON doesn't escape. */
const UNESCAPED_ASCII = /^[ !#-[\]-~]*$/

function encodeText(text: string): string {
  if (typeof text !== 'string') throw new TypeError('the name and tag of a plant must be strings')
  // Most texts are short and have no escapes. Testing for that is faster than JSON.stringify.
  return text.length < 100 && UNESCAPED_ASCII.test(text) ? `"${text}"` : JSON.stringify(text)
}
