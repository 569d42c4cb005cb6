import { MAX_INT64, MIN_INT64 } from '../plants/int64.ts'

/** Describes why an integer is invalid, as the predicate of a sentence such as `limit has a leading zero`. */
export function describeInvalidInteger(
  text: string,
  min: bigint | number = MIN_INT64,
  max: bigint | number = MAX_INT64,
): string {
  if (text === '') return 'is empty'
  // Don't report a leading `+` as a sign: it might be a space that the host re-encoded.
  if (min === 0 && /^-[0-9]+$/.test(text)) return 'has a sign'
  if (/^-?0[0-9]+$/.test(text)) return 'has a leading zero'
  return /^-?[0-9]+$/.test(text) ? `must be from ${min} to ${max}` : 'is not a decimal integer'
}
