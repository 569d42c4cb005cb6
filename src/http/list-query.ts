import { URLSearchParams } from 'node:url'
import type { ListQuery } from '../plants/list-plants.ts'
import { MAX_INT64, MIN_INT64, parseInt64 } from '../plants/plant.ts'
import { HttpError } from './errors.ts'

const MAX_INT32 = 2 ** 31 - 1

/**
 * Parses the query of a list request. Unknown parameters are ignored, and a `limit` above `maxLimit` is capped.
 * @param maxLimit the maximum of the host; Infinity if it has none
 * @throws HttpError 40004, whose message names each invalid parameter
 */
export function parseListQuery(query: string, maxLimit: number): ListQuery {
  const defaultLimit = maxLimit === Infinity ? undefined : maxLimit
  if (query === '') return { limit: defaultLimit, after: undefined, includesId: false }
  // The most common query: `URLSearchParams` would take 3% of the time of its request.
  const onlyLimit = query.startsWith('limit=') ? Number(query.slice('limit='.length)) : NaN
  if (Number.isInteger(onlyLimit) && onlyLimit >= 0 && onlyLimit <= MAX_INT32 && query === `limit=${onlyLimit}`) {
    return { limit: Math.min(onlyLimit, maxLimit), after: undefined, includesId: false }
  }

  // The ampersand protects a question mark at the start of the query, which URLSearchParams would remove.
  const parameters = new URLSearchParams(`&${query}`)
  const [limit, after, include] = [parameters.getAll('limit'), parameters.getAll('after'), parameters.getAll('include')]
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
  // A leading `+` isn't reported as a sign, because `+` stands for a space in a query.
  if (min === 0 && /^-[0-9]+$/.test(text)) return 'has a sign'
  if (/^-?0[0-9]+$/.test(text)) return 'has a leading zero'
  if (!/^-?[0-9]+$/.test(text)) return 'is not a decimal integer'
  const integer = parseInt64(text)
  return integer === undefined || integer < min || integer > max ? `must be from ${min} to ${max}` : undefined
}
