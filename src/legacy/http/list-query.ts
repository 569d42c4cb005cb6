import { MAX_INT32 } from '../option-checks.ts'
import { parseInt64 } from '../plants/int64.ts'
import type { ListQuery } from '../plants/list-plants.ts'
import { HttpError } from './errors.ts'
import { describeInvalidInteger } from './invalid-integer.ts'
import { decodePercent } from './percent-encoding.ts'

/** The lengths of the shortest parameter name without escapes, and of the longest name with all characters escaped. */
const MIN_NAME_LENGTH = 'limit'.length
const MAX_NAME_LENGTH = 3 * 'include'.length
const [AMPERSAND, EQUALS] = [0x26, 0x3d] as const

/**
 * Parses the query of a list request. Unknown parameters are ignored, and a `limit` above `maxLimit` is capped.
 * @throws HttpError 40004, whose message names each invalid parameter
 */
export function parseListQuery(query: string, maxLimit: number): ListQuery {
  if (query === '') return { limit: maxLimit, after: undefined, includesId: false }

  let limitText: string | undefined
  let afterText: string | undefined
  let include: string | undefined
  let start = 0
  let nameEnd = -1
  // A regular expression is slower for short queries, and a function call for each parameter is slower for long ones.
  for (let end = 0; end <= query.length; end++) {
    const code = end < query.length ? query.charCodeAt(end) : AMPERSAND
    if (code === EQUALS && nameEnd === -1) nameEnd = end
    if (code !== AMPERSAND) continue
    if (nameEnd === -1) nameEnd = end
    const nameLength = nameEnd - start
    if (nameLength >= MIN_NAME_LENGTH && nameLength <= MAX_NAME_LENGTH) {
      const name = decodePercent(query.slice(start, nameEnd))
      if (name === 'limit') limitText = decodeValue(limitText, query.slice(nameEnd + 1, end))
      else if (name === 'after') afterText = decodeValue(afterText, query.slice(nameEnd + 1, end))
      else if (name === 'include') include = decodeValue(include, query.slice(nameEnd + 1, end))
    }
    start = end + 1
    nameEnd = -1
  }
  const limit = limitText === undefined ? Infinity : parseLimit(limitText)
  const after = afterText === undefined ? undefined : parseInt64(afterText)
  const isAfterInvalid = afterText !== undefined && after === undefined
  const includesId = include === 'id'
  const isIncludeInvalid = include !== undefined && !includesId
  if (limit !== undefined && !isAfterInvalid && !isIncludeInvalid) {
    return { limit: Math.min(limit, maxLimit), after, includesId }
  }

  const problems: string[] = []
  if (limit === undefined)
    problems.push(`limit ${describeRepetition(limitText!) ?? describeInvalidInteger(limitText!, 0, MAX_INT32)}`)
  if (isAfterInvalid) problems.push(`after ${describeRepetition(afterText!) ?? describeInvalidInteger(afterText!)}`)
  if (isIncludeInvalid) problems.push(`include ${describeRepetition(include!) ?? 'must be id'}`)
  throw new HttpError('invalidQuery', `The query is invalid: ${problems.join('; ')}.`)
}

function parseLimit(text: string): number | undefined {
  if (!/^(?:0|[1-9][0-9]{0,9})$/.test(text)) return undefined
  const limit = Number(text)
  return limit <= MAX_INT32 ? limit : undefined
}

/**
 * Replaces the value of a repeated parameter. A lone surrogate can't occur in a decoded value, and is rejected by every
 * parser.
 */
const REPEATED = '\ud800'

/** A malformed escape is left as it is: no parameter accepts a percent sign. */
const decodeValue = (previous: string | undefined, text: string): string =>
  previous === undefined ? (decodePercent(text) ?? text) : REPEATED

const describeRepetition = (value: string): string | undefined => (value === REPEATED ? 'is repeated' : undefined)
