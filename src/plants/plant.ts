import { hasOption } from '../option-checks.ts'
import { decodeUtf8, encodeUtf8 } from './text.ts'

/** A plant as a response has it: without its `id`. */
export interface Plant {
  /** Any well-formed Unicode text without U+0000; may be empty. */
  readonly name: string
  /** Says what type of plant it is. */
  readonly tag?: string | undefined
}

/** A plant as it is created and kept. */
export interface NewPlant extends Plant {
  /** Identifies the plant among those of its owner: any int64. */
  readonly id: bigint
}

/**
 * Creates a plant that inherits no tag: a library with a prototype pollution vulnerability lets clients add one to
 * `Object.prototype`. Otherwise, a plant without a tag has no such member, because some databases reject undefined.
 */
export function createPlant(id: bigint, name: string, tag: string | undefined): NewPlant {
  if (tag !== undefined) return { id, name, tag }
  const plant: NewPlant = { id, name }
  return plant.tag === undefined ? plant : { id, name, tag: undefined }
}

/** Returns the tag of a plant, unless only `Object.prototype` has it. */
export function tagOf(plant: Plant): string | undefined {
  const { tag } = plant
  return tag === undefined || hasOption(plant, 'tag') ? tag : undefined
}

/** A plant as its JSON text, which a list joins with others. */
export class EncodedPlant {
  readonly id: bigint
  /** As {@link encodeFields} makes it. */
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

/** What stands between two plants of a list. */
export const SEPARATOR = ',{'

/** Makes a plant's text that of the last one of a list. */
export const closeObject = (json: string): string => json.slice(0, -SEPARATOR.length)

/**
 * The JSON text of a plant behind its opening brace, where an id may come, up to that of the next plant: a list then puts
 * one text together for each, not two. In UTF-8, one character for each byte.
 */
export function encodeFields(plant: EncodedPlant | NewPlant): string {
  if (plant instanceof EncodedPlant) return plant.json
  const { name } = plant
  const tag = tagOf(plant)
  if (tag === undefined) return encodeUtf8(`"name":${encodeText(name)}}${SEPARATOR}`)
  return encodeUtf8(`"name":${encodeText(name)},"tag":${encodeText(tag)}}${SEPARATOR}`)
}

/** How many bytes of UTF-8 the name and tag of a plant are, by its {@link encodeFields}. */
export function countTextBytes(json: string): number {
  // A quote within a name stands behind a backslash, so this is none of it.
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

/** ASCII that JSON takes as it is. */
const UNESCAPED_ASCII = /^[ !#-[\]-~]*$/

function encodeText(text: string): string {
  if (typeof text !== 'string') throw new TypeError('a plant has a name or tag that is no string')
  // Most texts are short and plain, and seeing that takes less than JSON.stringify.
  return text.length < 100 && UNESCAPED_ASCII.test(text) ? `"${text}"` : JSON.stringify(text)
}
