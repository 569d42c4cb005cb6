/** The bounds of an id. */
export const MIN_INT64: bigint = -(2n ** 63n)
export const MAX_INT64: bigint = 2n ** 63n - 1n

export function isInt64(value: bigint): boolean {
  return MIN_INT64 <= value && value <= MAX_INT64
}

/** Reads a decimal int64 such as `42`; undefined for anything else: `01`, `+1`, `1.0`, a space, 2^63. */
export function parseInt64(text: string): bigint | undefined {
  // 19 digits at most: to make a bigint of a million digits takes quadratic time.
  if (!/^-?(?:0|[1-9][0-9]{0,18})$/.test(text)) return undefined
  const value = BigInt(text)
  return isInt64(value) ? value : undefined
}
