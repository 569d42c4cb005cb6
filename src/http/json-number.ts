import type { JsonCursor } from './json-cursor.ts'

const PLUS = 0x2b
const MINUS = 0x2d
const POINT = 0x2e
const ZERO = 0x30
const UPPER_E = 0x45
const LOWER_E = 0x65

/**
 * Reads a number (RFC 8259 section 6): as a `bigint`, from its digits, where its exact value is a whole number
 * in the int64 range, else as the `number` that JSON.parse makes of it. Takes time linear in its length.
 */
export function readNumber(cursor: JsonCursor): bigint | number {
  const start = cursor.pos
  const negative = cursor.byte() === MINUS
  if (negative) cursor.pos++
  const first = cursor.pos
  let value = 0
  if (cursor.byte() === ZERO) cursor.pos++
  else value = readDigits(cursor, negative ? 'a digit' : 'a value')
  const next = cursor.byte()
  if (next === POINT || next === LOWER_E || next === UPPER_E) return readDecimal(cursor, start)
  // Up to here a double is exact, and several times as fast as a bigint from text.
  if (cursor.pos - first <= 15) return BigInt(negative ? -value : value)
  const literal = cursor.latin1.slice(start, cursor.pos)
  return int64(literal) ?? Number(literal)
}

/** Reads on in a number that has a fraction, an exponent, or both. */
function readDecimal(cursor: JsonCursor, start: number): bigint | number {
  const integer = cursor.latin1.slice(start, cursor.pos)
  let fraction = ''
  let exponent = 0
  if (cursor.byte() === POINT) {
    cursor.pos++
    const first = cursor.pos
    readDigits(cursor, 'a digit')
    fraction = cursor.latin1.slice(first, cursor.pos)
  }
  if (cursor.byte() === LOWER_E || cursor.byte() === UPPER_E) {
    cursor.pos++
    const sign = cursor.byte()
    if (sign === MINUS || sign === PLUS) cursor.pos++
    exponent = readDigits(cursor, 'a digit')
    if (sign === MINUS) exponent = -exponent
  }
  const rounded = Number(cursor.latin1.slice(start, cursor.pos))
  // No whole number is rounded to a fraction.
  if (!Number.isInteger(rounded)) return rounded
  return scaledInt64(integer + fraction, exponent - fraction.length) ?? rounded
}

/** Reads one digit or more. Their value is exact up to 15 digits, and Infinity where there are over 309. */
function readDigits(cursor: JsonCursor, expected: string): number {
  const { bytes, pos: start } = cursor
  const { length } = bytes
  let pos = start
  let value = 0
  while (pos < length) {
    const digit = Number(bytes[pos]) - ZERO
    if (digit < 0 || digit > 9) break
    value = value * 10 + digit
    pos++
  }
  if (pos === start) throw cursor.expected(expected)
  cursor.pos = pos
  return value
}

/** The value of an integer literal without needless zeros, where it is in the int64 range. */
function int64(literal: string): bigint | undefined {
  // A minus and 19 digits are the longest. A bigint of a million digits takes time quadratic in them.
  if (literal.length > 20) return undefined
  const value = BigInt(literal)
  return BigInt.asIntN(64, value) === value ? value : undefined
}

/** The value of an integer literal times 10 to the power of `scale`, where it is whole and in the int64 range. */
function scaledInt64(literal: string, scale: number): bigint | undefined {
  const sign = literal.startsWith('-') ? '-' : ''
  let start = sign.length
  while (literal.charCodeAt(start) === ZERO) start++
  if (start === literal.length) return 0n
  // Loops, since /0+$/ takes time quadratic in the length of a run of zeros.
  let end = literal.length
  while (literal.charCodeAt(end - 1) === ZERO) end--
  const zeros = literal.length - end + scale
  if (zeros < 0 || end - start + zeros > 19) return undefined
  return int64(sign + literal.slice(start, end) + '0'.repeat(zeros))
}
