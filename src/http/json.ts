import { isUtf8 } from 'node:buffer'
import { END, JsonCursor } from './json-cursor.ts'
import { readNumber } from './json-number.ts'
import { readString } from './json-string.ts'

/**
 * A JSON value. A number is a `bigint` where its exact value is a whole number in the int64 range (`42`, `1.0`,
 * `1e3`, `-0`), and a `number`, rounded as JSON.parse does it, everywhere else.
 */
export type JsonValue = null | boolean | number | bigint | string | readonly JsonValue[] | JsonObject

/** A JSON object: every member as it was written, in order, those that repeat a name included. */
export class JsonObject {
  readonly first: JsonMember | undefined

  constructor(first: JsonMember | undefined) {
    this.first = first
  }
}

/** A member of a {@link JsonObject}. They are linked: an array of them makes reading a small object 7 % slower. */
export interface JsonMember {
  readonly name: string
  readonly value: JsonValue
  readonly next: JsonMember | undefined
}

const MAX_DEPTH = 64

const QUOTE = 0x22
const COMMA = 0x2c
const COLON = 0x3a
const OPEN_BRACKET = 0x5b
const CLOSE_BRACKET = 0x5d
const LOWER_F = 0x66
const LOWER_N = 0x6e
const LOWER_T = 0x74
const OPEN_BRACE = 0x7b
const CLOSE_BRACE = 0x7d

/**
 * Reads a JSON text (RFC 8259) in UTF-8. Takes and refuses what JSON.parse does, but for one BOM at the start,
 * which is skipped, and for more than 64 levels of arrays and objects, which are refused. A string of the value
 * may keep the text of the whole body in memory.
 * @throws HttpError 40001 that says what was expected, and at which byte, counted from 0
 */
export function readJson(bytes: Uint8Array): JsonValue {
  const cursor = new JsonCursor(bytes)
  const value = readValue(cursor, 0)
  if (cursor.next() !== END) throw cursor.expected('the end of the body')
  if (!cursor.ascii && !isUtf8(cursor.bytes)) throw cursor.expected('UTF-8')
  return value
}

function readValue(cursor: JsonCursor, depth: number): JsonValue {
  switch (cursor.next()) {
    case QUOTE: return readString(cursor)
    case OPEN_BRACE: return readObject(cursor, depth + 1)
    case OPEN_BRACKET: return readArray(cursor, depth + 1)
    case LOWER_T: return readLiteral(cursor, 'true', true)
    case LOWER_F: return readLiteral(cursor, 'false', false)
    case LOWER_N: return readLiteral(cursor, 'null', null)
    default: return readNumber(cursor)
  }
}

function readObject(cursor: JsonCursor, depth: number): JsonObject {
  enter(cursor, depth)
  if (cursor.take(CLOSE_BRACE)) return new JsonObject(undefined)
  const first = readMember(cursor, depth)
  let last = first
  while (cursor.take(COMMA)) last = last.next = readMember(cursor, depth)
  if (!cursor.take(CLOSE_BRACE)) throw cursor.expected('"," or "}"')
  return new JsonObject(first)
}

function readMember(cursor: JsonCursor, depth: number): JsonMember & { next: JsonMember | undefined } {
  if (cursor.next() !== QUOTE) throw cursor.expected('a name in double quotes')
  const name = readString(cursor)
  if (!cursor.take(COLON)) throw cursor.expected('":"')
  return { name, value: readValue(cursor, depth), next: undefined }
}

function readArray(cursor: JsonCursor, depth: number): readonly JsonValue[] {
  enter(cursor, depth)
  const items: JsonValue[] = []
  if (cursor.take(CLOSE_BRACKET)) return items
  do items.push(readValue(cursor, depth))
  while (cursor.take(COMMA))
  if (!cursor.take(CLOSE_BRACKET)) throw cursor.expected('"," or "]"')
  return items
}

/** Steps over the bracket that opens a level: with no limit, a body of brackets would overflow the stack. */
function enter(cursor: JsonCursor, depth: number): void {
  if (depth > MAX_DEPTH) throw cursor.error('is nested too deeply', `at most ${MAX_DEPTH} levels`)
  cursor.pos++
}

function readLiteral<T>(cursor: JsonCursor, word: string, value: T): T {
  for (const letter of word) {
    if (cursor.byte() !== letter.charCodeAt(0)) throw cursor.expected(word)
    cursor.pos++
  }
  return value
}
