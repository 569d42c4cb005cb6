import { isSet } from '../option-checks.ts'
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
  return tag === undefined || isSet(plant, 'tag') ? tag : undefined
}

/** A plant as its JSON text, which a list joins with others. */
export class EncodedPlant {
  readonly id: bigint
  /** As {@link encodeRest} makes it. */
  readonly rest: string

  constructor(id: bigint, rest: string) {
    this.id = id
    this.rest = rest
  }
}

export function decodePlant(plant: EncodedPlant | NewPlant): NewPlant {
  if (!(plant instanceof EncodedPlant)) return plant
  const members = JSON.parse(decodeUtf8(closeRest(`{${plant.rest}`))) as Plant
  return createPlant(plant.id, members.name, tagOf(members))
}

/** What stands between two plants of a list. */
export const NEXT = ',{'

/** Makes a plant's text that of the last one of a list. */
export const closeRest = (rest: string): string => rest.slice(0, -NEXT.length)

/**
 * The JSON text of a plant behind its opening brace, where an id may come, up to that of the next plant: a list then puts
 * one text together for each, not two. In UTF-8, one character for each byte.
 */
export function encodeRest(plant: EncodedPlant | NewPlant): string {
  if (plant instanceof EncodedPlant) return plant.rest
  const { name } = plant
  const tag = tagOf(plant)
  if (tag === undefined) return encodeUtf8(`"name":${encodeText(name)}}${NEXT}`)
  return encodeUtf8(`"name":${encodeText(name)},"tag":${encodeText(tag)}}${NEXT}`)
}

/** How many bytes of UTF-8 the name and tag of a plant are, by its {@link encodeRest}. */
export function countTextBytes(rest: string): number {
  // A quote within a name stands behind a backslash, so this is none of it.
  const hasTag = rest.includes('","tag":"')
  let bytes = rest.length - (hasTag ? '"name":"","tag":""},{' : '"name":""},{').length
  const firstEscape = rest.indexOf('\\')
  if (firstEscape === -1) return bytes
  for (let at = firstEscape, length; at < rest.length; at += length) {
    length = rest[at] !== '\\' ? 1 : rest[at + 1] === 'u' ? 6 : 2
    bytes -= length - 1
  }
  return bytes
}

/** ASCII that JSON takes as it is. */
const PLAIN = /^[ !#-[\]-~]*$/

function encodeText(text: string): string {
  if (typeof text !== 'string') throw new TypeError('a plant has a name or tag that is no string')
  // Most texts are short and plain, and seeing that takes less than JSON.stringify.
  return text.length < 100 && PLAIN.test(text) ? `"${text}"` : JSON.stringify(text)
}
