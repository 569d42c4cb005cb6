import { int64 } from '../../plants/int64.ts'

const ZERO = 0x30

/**
 * The value of a decimal literal below 10^309, in linear time; undefined if it is no whole number or beyond int64.
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
