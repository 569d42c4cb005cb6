import { Buffer, isUtf8 } from 'node:buffer'
import { int64 } from '../../plants/int64.ts'
import type { HttpError } from '../errors.ts'
import { jsonError } from './error.ts'
import { scaledInt64 } from './number.ts'
import { JsonObject, type JsonMember, type JsonValue } from './value.ts'

/**
 * Reads a JSON text (RFC 8259) in UTF-8. It takes and refuses what JSON.parse does, with two exceptions: it skips one
 * BOM at the start, and refuses more than 64 levels of arrays and objects. A string of the value may keep the text of
 * the whole body in memory.
 * @throws HttpError 40001 that says what was expected, and at which byte, counted from 0
 */
export function readJson(bytes: Uint8Array): JsonValue {
  return new JsonReader(bytes).readText()
}

const MAX_DEPTH = 64

/** Stands for the byte after the last. */
const END = -1

const TAB = 0x09
const LINE_FEED = 0x0a
const CARRIAGE_RETURN = 0x0d
const SPACE = 0x20
const QUOTE = 0x22
const PLUS = 0x2b
const COMMA = 0x2c
const MINUS = 0x2d
const POINT = 0x2e
const ZERO = 0x30
const NINE = 0x39
const COLON = 0x3a
const UPPER_E = 0x45
const OPEN_BRACKET = 0x5b
const BACKSLASH = 0x5c
const CLOSE_BRACKET = 0x5d
const LOWER_A = 0x61
const LOWER_E = 0x65
const LOWER_F = 0x66
const LOWER_N = 0x6e
const LOWER_T = 0x74
const LOWER_U = 0x75
const OPEN_BRACE = 0x7b
const CLOSE_BRACE = 0x7d

/** The characters that may follow a backslash, and what they stand for; but `u`, which four digits follow. */
const ESCAPES: ReadonlyMap<number, string> = new Map(
  ['""', '\\\\', '//', 'b\b', 'f\f', 'n\n', 'r\r', 't\t'].map((pair) => [pair.charCodeAt(0), pair.slice(1)]),
)

/** One class in one file: V8 makes faster code of it than of one that calls into other modules. */
class JsonReader {
  readonly #bytes: Buffer
  /** The same bytes, one character for each, to cut strings out of. */
  readonly #latin1: string
  /** Offset of the byte that comes next. */
  #pos = 0
  /** Whether all strings so far are ASCII; everything outside of strings has to be. */
  #ascii = true

  constructor(bytes: Uint8Array) {
    this.#bytes = Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
    this.#latin1 = this.#bytes.toString('latin1')
    if (this.#latin1.startsWith('\xef\xbb\xbf')) this.#pos = 3
  }

  readText(): JsonValue {
    const value = this.#readValue(0)
    if (this.#next() !== END) throw this.#expected('the end of the body')
    if (!this.#ascii && !isUtf8(this.#bytes)) throw this.#expected('UTF-8')
    return value
  }

  #readValue(depth: number): JsonValue {
    switch (this.#next()) {
      case QUOTE:
        return this.#readString()
      case OPEN_BRACE:
        return this.#readObject(depth + 1)
      case OPEN_BRACKET:
        return this.#readArray(depth + 1)
      case LOWER_T:
        return this.#readLiteral('true', true)
      case LOWER_F:
        return this.#readLiteral('false', false)
      case LOWER_N:
        return this.#readLiteral('null', null)
      default:
        return this.#readNumber()
    }
  }

  #readObject(depth: number): JsonObject {
    this.#enter(depth)
    if (this.#take(CLOSE_BRACE)) return new JsonObject(undefined)
    const first = this.#readMember(depth)
    let last = first
    while (this.#take(COMMA)) last = last.next = this.#readMember(depth)
    if (!this.#take(CLOSE_BRACE)) throw this.#expected('"," or "}"')
    return new JsonObject(first)
  }

  #readMember(depth: number): JsonMember & { next: JsonMember | undefined } {
    if (this.#next() !== QUOTE) throw this.#expected('a name in double quotes')
    const name = this.#readString()
    if (!this.#take(COLON)) throw this.#expected('":"')
    return { name, value: this.#readValue(depth), next: undefined }
  }

  #readArray(depth: number): readonly JsonValue[] {
    this.#enter(depth)
    const items: JsonValue[] = []
    if (this.#take(CLOSE_BRACKET)) return items
    do items.push(this.#readValue(depth))
    while (this.#take(COMMA))
    if (!this.#take(CLOSE_BRACKET)) throw this.#expected('"," or "]"')
    return items
  }

  /** Steps over the bracket that opens a level. Without a limit many of them would overflow the stack. */
  #enter(depth: number): void {
    if (depth > MAX_DEPTH) throw this.#expected(`at most ${MAX_DEPTH} levels`, 'is nested too deeply')
    this.#pos++
  }

  #readLiteral<T>(word: string, value: T): T {
    for (const letter of word) {
      if (this.#byte() !== letter.charCodeAt(0)) throw this.#expected(word)
      this.#pos++
    }
    return value
  }

  #readString(): string {
    this.#pos++
    let text = this.#readUnescaped()
    while (this.#byte() === BACKSLASH) text += this.#readEscape() + this.#readUnescaped()
    this.#pos++
    return text
  }

  /** Reads what comes before the next escape, or else before the closing quote. */
  #readUnescaped(): string {
    const bytes = this.#bytes
    const start = this.#pos
    const { length } = bytes
    let pos = start
    let byte = END
    let bits = 0
    for (;;) {
      byte = pos < length ? Number(bytes[pos]) : END
      // One comparison for each lower-case letter, the most frequent bytes.
      if (byte <= BACKSLASH && (byte === BACKSLASH || byte === QUOTE || byte < SPACE)) break
      bits |= byte
      pos++
    }
    this.#pos = pos
    if (byte === END) throw this.#expected('the end of the string')
    if (byte < SPACE) throw this.#expected('an escape for a control character')
    if (bits < 0x80) return this.#latin1.slice(start, pos)
    this.#ascii = false
    return bytes.toString('utf8', start, pos)
  }

  #readEscape(): string {
    this.#pos++
    const byte = this.#byte()
    const character = ESCAPES.get(byte)
    if (character === undefined && byte !== LOWER_U) throw this.#expected('one of "\\/bfnrtu')
    this.#pos++
    return character ?? this.#readCodeUnit()
  }

  /** Reads the four digits of a UTF-16 code unit, which may be half of a surrogate pair, or a lone one. */
  #readCodeUnit(): string {
    let unit = 0
    for (let i = 0; i < 4; i++) {
      const digit = hexDigit(this.#byte())
      if (digit === undefined) throw this.#expected('a hexadecimal digit')
      unit = unit * 16 + digit
      this.#pos++
    }
    return String.fromCharCode(unit)
  }

  #readNumber(): bigint | number {
    const start = this.#pos
    const negative = this.#byte() === MINUS
    if (negative) this.#pos++
    const first = this.#pos
    let value = 0
    if (this.#byte() === ZERO) this.#pos++
    else value = this.#readDigits(negative ? 'a digit' : 'a value')
    const next = this.#byte()
    if (next === POINT || next === LOWER_E || next === UPPER_E) return this.#readDecimal(start)
    // Up to here a double is exact, and a bigint is made of it faster than of text.
    if (this.#pos - first <= 15) return BigInt(negative ? -value : value)
    const literal = this.#latin1.slice(start, this.#pos)
    return int64(literal) ?? Number(literal)
  }

  /** Reads on in a number that has a fraction, an exponent, or both. */
  #readDecimal(start: number): bigint | number {
    const integer = this.#latin1.slice(start, this.#pos)
    let fraction = ''
    let exponent = 0
    if (this.#byte() === POINT) {
      const point = this.#pos++
      this.#readDigits('a digit')
      fraction = this.#latin1.slice(point + 1, this.#pos)
    }
    if (this.#byte() === LOWER_E || this.#byte() === UPPER_E) {
      this.#pos++
      const sign = this.#byte()
      if (sign === MINUS || sign === PLUS) this.#pos++
      exponent = this.#readDigits('a digit')
      if (sign === MINUS) exponent = -exponent
    }
    const rounded = Number(this.#latin1.slice(start, this.#pos))
    // No whole number is rounded to a fraction. To find that out exactly would take as long again.
    if (!Number.isInteger(rounded)) return rounded
    return scaledInt64(integer + fraction, exponent - fraction.length) ?? rounded
  }

  /** Reads one digit or more. Their value is exact up to 15 digits, and Infinity beyond 309. */
  #readDigits(expected: string): number {
    const bytes = this.#bytes
    const start = this.#pos
    const { length } = bytes
    let pos = start
    let value = 0
    while (pos < length) {
      const digit = Number(bytes[pos]) - ZERO
      if (digit < 0 || digit > 9) break
      value = value * 10 + digit
      pos++
    }
    if (pos === start) throw this.#expected(expected)
    this.#pos = pos
    return value
  }

  /** Steps over white space, and over `wanted` if that follows. */
  #take(wanted: number): boolean {
    if (this.#next() !== wanted) return false
    this.#pos++
    return true
  }

  /** Steps over white space, to the byte that is returned. */
  #next(): number {
    let byte = this.#byte()
    // The first comparison is enough for most bytes.
    while (byte <= SPACE && (byte === SPACE || byte === LINE_FEED || byte === CARRIAGE_RETURN || byte === TAB)) {
      this.#pos++
      byte = this.#byte()
    }
    return byte
  }

  /**
   * The byte that comes next. The length is checked first: after one read beyond the end, as of a body that is cut
   * short, V8 runs slower code for every later body. `Number` costs nothing, and tells TypeScript that there is a byte.
   */
  #byte(): number {
    return this.#pos < this.#bytes.length ? Number(this.#bytes[this.#pos]) : END
  }

  #expected(what: string, problem?: string): HttpError {
    return jsonError(this.#bytes, this.#pos, what, problem)
  }
}

function hexDigit(byte: number): number | undefined {
  if (byte >= ZERO && byte <= NINE) return byte - ZERO
  const lower = byte | 0x20
  return lower >= LOWER_A && lower <= LOWER_F ? lower - LOWER_A + 10 : undefined
}
