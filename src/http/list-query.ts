import type { ListQuery } from '../plants/list-plants.ts'
import { MAX_INT64, MIN_INT64, parseInt64 } from '../plants/plant.ts'
import { HttpError } from './errors.ts'

const MAX_INT32 = 2 ** 31 - 1

/** The lengths of the shortest parameter name without escapes, and of the longest with all characters escaped. */
const MIN_NAME_LENGTH = 'limit'.length
const MAX_NAME_LENGTH = 3 * 'include'.length

/** The parameters of a list, with the values that the query has for each. */
type Parameters = Record<'limit' | 'after' | 'include', string[]>

/**
 * Parses the query of a list request. Unknown parameters are ignored, and a `limit` above `maxLimit` is capped.
 * @param maxLimit the maximum of the host; Infinity if it has none
 * @throws HttpError 40004, whose message names each invalid parameter
 */
export function parseListQuery(query: string, maxLimit: number): ListQuery {
  const defaultLimit = maxLimit === Infinity ? undefined : maxLimit
  if (query === '') return { limit: defaultLimit, after: undefined, includesId: false }

  const { limit, after, include } = parseQuery(query)
  const problems: string[] = []
  const limitProblem = limit.length > 1 ? 'is repeated' : describeInteger(limit[0], 0, MAX_INT32)
  if (limitProblem !== undefined) problems.push(`limit ${limitProblem}`)
  const afterProblem = after.length > 1 ? 'is repeated' : describeInteger(after[0], MIN_INT64, MAX_INT64)
  if (afterProblem !== undefined) problems.push(`after ${afterProblem}`)
  if (include.length > 1) problems.push('include is repeated')
  else if (include.length === 1 && include[0] !== 'id') problems.push('include must be id')
  if (problems.length > 0) throw new HttpError('invalidQuery', `The query is invalid: ${problems.join('; ')}.`)
  return {
    limit: limit.length === 0 ? defaultLimit : Math.min(Number(limit[0]), maxLimit),
    after: after.length === 0 ? undefined : BigInt(after[0]!),
    includesId: include.length > 0,
  }
}

/**
 * Describes what is wrong with a decimal integer, as the predicate of a sentence such as `limit has a leading zero`.
 * @returns undefined if the text is a decimal integer in the range, or if there is no text
 */
export function describeInteger(
  text: string | undefined,
  min: bigint | number,
  max: bigint | number,
): string | undefined {
  // Integers of up to nine digits are in every range. The checks below are slower.
  if (text === undefined || /^(?:0|[1-9][0-9]{0,8})$/.test(text)) return undefined
  if (text === '') return 'is empty'
  // Don't report a leading `+` as a sign: it might be a space that the host re-encoded.
  if (min === 0 && /^-[0-9]+$/.test(text)) return 'has a sign'
  if (/^-?0[0-9]+$/.test(text)) return 'has a leading zero'
  if (!/^-?[0-9]+$/.test(text)) return 'is not a decimal integer'
  const integer = parseInt64(text)
  return integer === undefined || integer < min || integer > max ? `must be from ${min} to ${max}` : undefined
}

function parseQuery(query: string): Parameters {
  const parameters: Parameters = { limit: [], after: [], include: [] }
  for (const parameter of query.split('&')) {
    const equals = parameter.indexOf('=')
    const escapedName = equals === -1 ? parameter : parameter.slice(0, equals)
    // Decoding is slow, so it's limited to texts that can be the name of a parameter.
    if (escapedName.length < MIN_NAME_LENGTH || escapedName.length > MAX_NAME_LENGTH) continue
    const name = decode(escapedName)
    if (name !== 'limit' && name !== 'after' && name !== 'include') continue
    parameters[name].push(equals === -1 ? '' : decode(parameter.slice(equals + 1)))
  }
  return parameters
}

/**
 * Decodes percent-escapes if all of them are of ASCII characters. No parameter accepts others, and thousands of
 * exceptions from `decodeURIComponent` would be slow.
 */
function decode(text: string): string {
  if (!text.includes('%')) return text
  return /^(?:[^%]|%[0-7][0-9a-f])*$/i.test(text) ? decodeURIComponent(text) : text
}
