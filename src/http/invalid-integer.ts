import { MAX_INT64, MIN_INT64 } from '../plants/int64.ts'

/** Says what is wrong with the text of an integer that isn't valid, as the end of a sentence about it. */
export function describeInvalidInteger(
  text: string,
  min: bigint | number = MIN_INT64,
  max: bigint | number = MAX_INT64,
): string {
  if (text === '') return 'is empty'
  // A plus sign can be a space that a host has encoded again, so it isn't reported as a sign.
  if (min === 0 && /^-[0-9]+$/.test(text)) return 'has a sign'
  if (/^-?0[0-9]+$/.test(text)) return 'has a leading zero'
  return /^-?[0-9]+$/.test(text) ? `must be from ${min} to ${max}` : 'is not a decimal integer'
}
