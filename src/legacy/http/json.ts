import { Buffer, isUtf8 } from 'node:buffer'
import { toInt64 } from '../plants/int64.ts'
import { HttpError } from './errors.ts'

/**
 * A parsed JSON value. A number whose exact value is an int64 (`42`, `1.0`, `1e3`, `-0`) is a `bigint`; other numbers
 * are doubles.
 */
export type JsonValue = null | boolean | number | bigint | string | readonly JsonValue[] | JsonObject

/** A JSON object with all its members in their original order, including members with repeated names. */
export class JsonObject {
  readonly first: JsonMember | undefined

  constructor(first: JsonMember | undefined) {
    this.first = first
  }
}

/** A member of a {@link JsonObject}. Members form a linked list, which is faster to create than a small array. */
interface JsonMember {
  readonly name: string
  readonly value: JsonValue
  readonly next: JsonMember | undefined
}

/**
 * Parses JSON text with at most 64 levels of nesting, and skips a BOM. Strings in the result may keep the whole body in
 * memory.
 * @throws HttpError 40001 if the body isn't JSON, isn't UTF-8, or is nested too deeply
 */
export const parseJson = (bytes: Uint8Array): JsonValue => new JsonParser(bytes).readText()

const MAX_DEPTH = 64

/** Returned instead of a byte at the end of the body. */
const END_OF_INPUT = -1
const [TAB, LINE_FEED, CARRIAGE_RETURN, SPACE] = [0x09, 0x0a, 0x0d, 0x20] as const
const [OPEN_BRACE, CLOSE_BRACE, OPEN_BRACKET, CLOSE_BRACKET] = [0x7b, 0x7d, 0x5b, 0x5d] as const
const [QUOTE, BACKSLASH, COMMA, COLON] = [0x22, 0x5c, 0x2c, 0x3a] as const
const [PLUS, MINUS, DECIMAL_POINT, ZERO, NINE, UPPER_E] = [0x2b, 0x2d, 0x2e, 0x30, 0x39, 0x45] as const
const [LOWER_A, LOWER_E, LOWER_F, LOWER_N, LOWER_T, LOWER_U] = [0x61, 0x65, 0x66, 0x6e, 0x74, 0x75] as const
const ESCAPES: ReadonlySet<number> = new Set(Buffer.from('"\\/bfnrtu'))

/** The whole parser is one class in one module, because V8 optimizes that better than calls across modules. */
class JsonParser {
  readonly #bytes: Buffer
  /** The body with one character per byte, to slice strings from. */
  readonly #latin1: string
  #pos = 0
  /** Whether all strings so far are ASCII. Outside of strings, JSON is always ASCII. */
  #isAscii = true

  constructor(bytes: Uint8Array) {
    this.#bytes = Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
    this.#latin1 = this.#bytes.toString('latin1')
    if (this.#latin1.startsWith('\xef\xbb\xbf')) this.#pos = 3
  }

  readText(): JsonValue {
    const value = this.#readValue(0)
    if (this.#peekToken() !== END_OF_INPUT) throw this.#createExpectedError('the end of the body')
    if (!this.#isAscii && !isUtf8(this.#bytes)) throw this.#createExpectedError('UTF-8')
    return value
  }

  #readValue(depth: number): JsonValue {
    switch (this.#peekToken()) {
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
    if (this.#skipIf(CLOSE_BRACE)) return new JsonObject(undefined)
    const first = this.#readMember(depth)
    let last = first
    while (this.#skipIf(COMMA)) last = last.next = this.#readMember(depth)
    if (!this.#skipIf(CLOSE_BRACE)) throw this.#createExpectedError('"," or "}"')
    return new JsonObject(first)
  }

  #readMember(depth: number): JsonMember & { next: JsonMember | undefined } {
    if (this.#peekToken() !== QUOTE) throw this.#createExpectedError('a name in double quotes')
    const name = this.#readString()
    if (!this.#skipIf(COLON)) throw this.#createExpectedError('":"')
    return { name, value: this.#readValue(depth), next: undefined }
  }

  #readArray(depth: number): readonly JsonValue[] {
    this.#enter(depth)
    if (this.#skipIf(CLOSE_BRACKET)) return []
    const items: JsonValue[] = [this.#readValue(depth)]
    while (this.#skipIf(COMMA)) items.push(this.#readValue(depth))
    if (!this.#skipIf(CLOSE_BRACKET)) throw this.#createExpectedError('"," or "]"')
    return items
  }

  /** Skips an opening bracket. The depth is limited because deep nesting would overflow the stack. */
  #enter(depth: number): void {
    if (depth > MAX_DEPTH) throw this.#createExpectedError(`at most ${MAX_DEPTH} levels`, 'is nested too deeply')
    this.#pos++
  }

  #readLiteral<T>(literal: string, value: T): T {
    for (const letter of literal) {
      if (this.#peekByte() !== letter.charCodeAt(0)) throw this.#createExpectedError(literal)
      this.#pos++
    }
    return value
  }

  #readString(): string {
    const start = ++this.#pos
    let bits = this.#skipUnescaped()
    let isEscaped = false
    while (this.#peekByte() === BACKSLASH) {
      isEscaped = true
      this.#skipEscape()
      bits |= this.#skipUnescaped()
    }
    const end = this.#pos++
    if (bits >= 0x80) this.#isAscii = false
    const text = bits < 0x80 ? this.#latin1.slice(start, end) : this.#bytes.toString('utf8', start, end)
    // Unescaping the whole string in one call is fast even if every character is escaped.
    return isEscaped ? (JSON.parse(`"${text}"`) as string) : text
  }

  /**
   * Skips to the next backslash or the closing quote. Returns the bitwise OR of all skipped bytes, which shows whether
   * they are ASCII.
   */
  #skipUnescaped(): number {
    const bytes = this.#bytes
    const { length } = bytes
    let pos = this.#pos
    let byte = END_OF_INPUT
    let bits = 0
    for (;;) {
      byte = pos < length ? Number(bytes[pos]) : END_OF_INPUT
      if (byte <= BACKSLASH && (byte === BACKSLASH || byte === QUOTE || byte < SPACE)) break
      bits |= byte
      pos++
    }
    this.#pos = pos
    if (byte === END_OF_INPUT) throw this.#createExpectedError('the end of the string')
    if (byte < SPACE) throw this.#createExpectedError('an escape for a control character')
    return bits
  }

  #skipEscape(): void {
    this.#pos++
    const byte = this.#peekByte()
    if (!ESCAPES.has(byte)) throw this.#createExpectedError('one of "\\/bfnrtu')
    this.#pos++
    for (let i = 0; byte === LOWER_U && i < 4; i++) {
      if (!isHexDigit(this.#peekByte())) throw this.#createExpectedError('a hexadecimal digit')
      this.#pos++
    }
  }

  #readNumber(): bigint | number {
    const start = this.#pos
    const isNegative = this.#peekByte() === MINUS
    if (isNegative) this.#pos++
    const first = this.#pos
    let value = 0
    if (this.#peekByte() === ZERO) this.#pos++
    else value = this.#readDigits(isNegative ? 'a digit' : 'a value')
    const next = this.#peekByte()
    if (next === DECIMAL_POINT || next === LOWER_E || next === UPPER_E) return this.#readDecimal(start)
    // With up to 15 digits, doubles are exact, and converting a double to a bigint is faster than parsing text.
    if (this.#pos - first <= 15) return BigInt(isNegative ? -value : value)
    const literal = this.#latin1.slice(start, this.#pos)
    return toInt64(literal) ?? Number(literal)
  }

  #readDecimal(start: number): bigint | number {
    const point = this.#pos
    if (this.#peekByte() === DECIMAL_POINT) {
      this.#pos++
      this.#readDigits('a digit')
    }
    const end = this.#pos
    let exponent = 0
    if (this.#peekByte() === LOWER_E || this.#peekByte() === UPPER_E) {
      this.#pos++
      const sign = this.#peekByte()
      if (sign === MINUS || sign === PLUS) this.#pos++
      exponent = this.#readDigits('a digit')
      if (sign === MINUS) exponent = -exponent
    }
    const literal = this.#latin1.slice(start, this.#pos)
    const rounded = Number(literal)
    // Rounding never turns an integer into a fraction, nor an int64 into a number beyond 2^63.
    if (!Number.isInteger(rounded) || Math.abs(rounded) > 2 ** 63) return rounded
    // Distinct numbers of up to 15 digits have distinct doubles, except that tiny numbers become 0. So an integer other
    // than 0 is exact here.
    if (literal.length <= 16 && rounded !== 0 && Math.abs(rounded) < 1e15) return BigInt(rounded)
    const fraction = this.#latin1.slice(point + 1, end)
    return toScaledInt64(this.#latin1.slice(start, point) + fraction, exponent - fraction.length) ?? rounded
  }

  /**
   * Reads one or more digits and returns their value, which is exact for up to 15 digits and may be Infinity for 309 or
   * more.
   */
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
    if (pos === start) throw this.#createExpectedError(expected)
    this.#pos = pos
    return value
  }

  #skipIf(expected: number): boolean {
    if (this.#peekToken() !== expected) return false
    this.#pos++
    return true
  }

  /** Skips white space, and returns the next byte without consuming it. */
  #peekToken(): number {
    let byte = this.#peekByte()
    while (byte <= SPACE && (byte === SPACE || byte === LINE_FEED || byte === CARRIAGE_RETURN || byte === TAB)) {
      this.#pos++
      byte = this.#peekByte()
    }
    return byte
  }

  /** Returns the next byte without consuming it. Checks the bounds, because out-of-bounds reads make V8 deoptimize. */
  #peekByte(): number {
    return this.#pos < this.#bytes.length ? Number(this.#bytes[this.#pos]) : END_OF_INPUT
  }

  #createExpectedError(expected: string, problem: string = describeProblem(this.#bytes, this.#pos)): HttpError {
    if (isUtf8(this.#bytes)) return createNotJsonError(problem, expected, this.#pos)
    return createNotJsonError('is not UTF-8', 'a well-formed character', findInvalidUtf8(this.#bytes))
  }
}

function isHexDigit(byte: number): boolean {
  const lower = byte | 0x20
  return (byte >= ZERO && byte <= NINE) || (lower >= LOWER_A && lower <= LOWER_F)
}

/**
 * Returns the digits times 10^scale, or undefined if the result isn't an int64. The literal has to be below 10^309.
 * Takes time linear in the number of digits.
 */
function toScaledInt64(digits: string, scale: number): bigint | undefined {
  const sign = digits.startsWith('-') ? '-' : ''
  let start = sign.length
  while (digits.charCodeAt(start) === ZERO) start++
  if (start === digits.length) return 0n
  // A loop instead of /0+$/, which takes quadratic time for long runs of zeros.
  let end = digits.length
  while (digits.charCodeAt(end - 1) === ZERO) end--
  const zeroCount = digits.length - end + scale
  if (zeroCount < 0) return undefined
  return toInt64(sign + digits.slice(start, end) + '0'.repeat(zeroCount))
}

function describeProblem(body: Buffer, offset: number): string {
  if (offset < body.length) return 'is not JSON'
  return offset === 0 ? 'is empty' : 'ends too early'
}

function createNotJsonError(problem: string, expected: string, offset: number): HttpError {
  return new HttpError('invalidJson', `The body ${problem}: expected ${expected} at byte ${offset}.`)
}

function findInvalidUtf8(bytes: Buffer): number {
  const reencoded = Buffer.from(bytes.toString())
  let offset = 0
  while (bytes[offset] === reencoded[offset]) offset++
  // Go back to the start of the character, because an invalid sequence may begin with the same bytes as its
  // replacement, U+FFFD.
  while ((Number(reencoded[offset]) & 0xc0) === 0x80) offset--
  return offset
}
