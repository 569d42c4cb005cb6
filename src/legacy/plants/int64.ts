export const MIN_INT64: bigint = -(2n ** 63n)
export const MAX_INT64: bigint = 2n ** 63n - 1n

export const isInt64 = (value: bigint): boolean => MIN_INT64 <= value && value <= MAX_INT64

/** Parses a decimal int64 such as `42`. Returns undefined for anything else: `01`, `+1`, `1.0`, a space, 2^63. */
export function parseInt64(text: string): bigint | undefined {
  return /^-?(?:0|[1-9][0-9]*)$/.test(text) ? toInt64(text) : undefined
}

/** Converts an integer without leading zeros. Returns undefined if it is out of the int64 range. */
export function toInt64(integer: string): bigint | undefined {
  // An int64 has at most a minus sign and 19 digits. Converting a million digits would take quadratic time.
  if (integer.length > 20) return undefined
  const value = BigInt(integer)
  return isInt64(value) ? value : undefined
}
