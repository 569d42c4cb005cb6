export const MIN_INT64: bigint = -(2n ** 63n)
export const MAX_INT64: bigint = 2n ** 63n - 1n

export const isInt64 = (value: bigint): boolean => MIN_INT64 <= value && value <= MAX_INT64

/** Reads a decimal int64 such as `42`; undefined for anything else: `01`, `+1`, `1.0`, a space, 2^63. */
export function parseInt64(text: string): bigint | undefined {
  // Up to 15 digits a double is exact, and makes a bigint in half the time that a text does.
  const value = text.length <= 15 ? parseDigits(text) : NaN
  if (value > 0) return BigInt(value)
  return /^-?(?:0|[1-9][0-9]*)$/.test(text) ? toInt64(text) : undefined
}

/** The value of a text of digits; NaN if it begins with a zero or holds anything else. */
function parseDigits(text: string): number {
  let value = text.startsWith('0') ? NaN : 0
  for (let index = 0; index < text.length; index++) {
    const digit = text.charCodeAt(index) - 48
    value = digit >= 0 && digit <= 9 ? 10 * value + digit : NaN
  }
  return value
}

/** The value of a text that is an integer without a zero before it; undefined if that is beyond int64. */
export function toInt64(integer: string): bigint | undefined {
  // The longest has a minus and 19 digits. To make a bigint of a million digits takes quadratic time.
  if (integer.length > 20) return undefined
  const value = BigInt(integer)
  return isInt64(value) ? value : undefined
}
