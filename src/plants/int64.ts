const MIN = -(2n ** 63n)
const MAX = 2n ** 63n - 1n

/** Reads a decimal int64 such as `42`; undefined for anything else: `01`, `+1`, `1.0`, a space, 2^63. */
export function parseInt64(text: string): bigint | undefined {
  if (!/^-?(?:0|[1-9][0-9]{0,18})$/.test(text)) return undefined
  const value = BigInt(text)
  return MIN <= value && value <= MAX ? value : undefined
}
