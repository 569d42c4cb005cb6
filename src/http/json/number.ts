import { isInt64 } from '../../plants/int64.ts'

const ZERO = 0x30

/** The value of an integer literal of JSON; undefined if it is beyond int64. */
export function int64(literal: string): bigint | undefined {
  // The longest has a minus and 19 digits. To make a bigint of a million digits takes quadratic time.
  if (literal.length > 20) return undefined
  const value = BigInt(literal)
  return isInt64(value) ? value : undefined
}

/**
 * The value of a decimal literal that is finite as a double, and so not 10^309 or more; undefined if it is no whole
 * number or beyond int64. Takes time linear in the length of the digits.
 * @param digits an optional minus, and the digits before and after the point
 * @param scale the power of 10 by which they are multiplied
 */
export function scaledInt64(digits: string, scale: number): bigint | undefined {
  const sign = digits.startsWith('-') ? '-' : ''
  let start = sign.length
  while (digits.charCodeAt(start) === ZERO) start++
  if (start === digits.length) return 0n
  // A loop, since /0+$/ takes time quadratic in the length of a run of zeros.
  let end = digits.length
  while (digits.charCodeAt(end - 1) === ZERO) end--
  const zeros = digits.length - end + scale
  if (zeros < 0) return undefined
  return int64(sign + digits.slice(start, end) + '0'.repeat(zeros))
}
