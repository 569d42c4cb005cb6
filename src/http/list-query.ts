import { MAX_INT32 } from '../option-checks.ts'
import { parseInt64 } from '../plants/int64.ts'
import type { ListQuery } from '../plants/listing.ts'
import { HttpError } from './errors.ts'
import { decodePercent, escapable } from './percent.ts'

const WHOLE_LIST: ListQuery = { limit: Infinity, after: undefined, includesId: false }
const parameter = (name: string): RegExp => new RegExp(`&${escapable(name)}(?:=([^&]*))?(?![^&])`)
const LIMIT = parameter('limit')
const AFTER = parameter('after')
const INCLUDE = parameter('include')

/** @throws HttpError 40004 that names each of `limit`, `after` and `include` that is wrong; other parameters are ignored */
export function parseListQuery(query: string): ListQuery {
  if (query === '') return WHOLE_LIST

  const parameters = `&${query}`
  const limitText = valueOf(LIMIT, parameters)
  const afterText = valueOf(AFTER, parameters)
  const include = valueOf(INCLUDE, parameters)
  const limit = limitText === undefined ? Infinity : parseLimit(limitText)
  const after = afterText === undefined ? undefined : parseInt64(afterText)
  const isAfterWrong = afterText !== undefined && after === undefined
  const includesId = include === 'id'
  const isIncludeWrong = include !== undefined && !includesId
  if (limit !== undefined && !isAfterWrong && !isIncludeWrong) return { limit, after, includesId }

  const wrong: string[] = []
  if (limit === undefined) wrong.push(`limit must be a decimal whole number from 0 to ${MAX_INT32}, given once`)
  if (isAfterWrong) wrong.push('after must be a decimal int64, given once')
  if (isIncludeWrong) wrong.push('include must be id, given once')
  throw new HttpError('badQuery', `In the query, ${wrong.join('; ')}.`)
}

function parseLimit(text: string): number | undefined {
  if (!/^(?:0|[1-9][0-9]{0,9})$/.test(text)) return undefined
  const limit = Number(text)
  return limit <= MAX_INT32 ? limit : undefined
}

/** The value of a parameter. It is empty, which fits none of them, if it is missing, malformed or one of two. */
function valueOf(parameter: RegExp, parameters: string): string | undefined {
  const match = parameter.exec(parameters)
  if (match === null) return undefined
  const [text, value = ''] = match
  const isRepeated = parameter.test(parameters.slice(match.index + text.length))
  return isRepeated ? '' : (decodePercent(value) ?? '')
}
