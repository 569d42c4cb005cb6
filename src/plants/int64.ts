export const MIN_INT64: bigint = -(2n ** 63n)
export const MAX_INT64: bigint = 2n ** 63n - 1n

export const isInt64 = (value: bigint): boolean => MIN_INT64 <= value && value <= MAX_INT64

/** Parses a decimal int64 such as `42`. Returns undefined for anything else: `01`, `+1`, `1.0`, a space, 2^63. */
export function parseInt64(text: string): bigint | undefined {
  // With up to 15 digits, doubles are exact, and converting a double to a bigint takes half as long as parsing text.
  const value = text.length <= 15 ? parseDigits(text) : NaN
  if (value > 0) return BigInt(value)
  return /^-?(?:0|[1-9][0-9]*)$/.test(text) ? toInt64(text) : undefined
}

/** Returns the value of a string of digits, or NaN if it begins with a zero or contains other characters. */
function parseDigits(text: string): number {
  let value = text.startsWith('0') ? NaN : 0
  for (let index = 0; index < text.length; index++) {
    const digit = text.charCodeAt(index) - 48
    value = digit >= 0 && digit <= 9 ? 10 * value + digit : NaN
  }
  return value
}

/** Converts an integer without leading zeros. Returns undefined if it is out of the int64 range. */
export function toInt64(integer: string): bigint | undefined {
  // An int64 has at most a minus sign and 19 digits. Converting a million digits would take quadratic time.
  if (integer.length > 20) return undefined
  const value = BigInt(integer)
  return isInt64(value) ? value : undefined
}
