import { MAX_INT32 } from '../option-checks.ts'
import { parseInt64 } from '../plants/int64.ts'
import type { ListQuery } from '../plants/listing.ts'
import { HttpError } from './errors.ts'
import { decodePercent } from './percent.ts'

const WHOLE_LIST: ListQuery = { limit: Infinity, after: undefined }

/** @throws HttpError 40004 that names each of `limit` and `after` that is wrong; other parameters are ignored */
export function parseListQuery(query: string): ListQuery {
  if (query === '') return WHOLE_LIST

  let limitText: string | undefined
  let afterText: string | undefined
  // A loop: `split` would add a fifth to what a list of ten costs the service.
  for (let start = 0, end; start <= query.length; start = end + 1) {
    end = query.indexOf('&', start)
    if (end === -1) end = query.length
    const parameter = query.slice(start, end)
    const equalsAt = parameter.indexOf('=')
    const name = decodePercent(equalsAt === -1 ? parameter : parameter.slice(0, equalsAt))
    if (name !== 'limit' && name !== 'after') continue
    // Without "=" this is the name. That is no number, nor is a malformed escape, nor are two values joined.
    const written = parameter.slice(equalsAt + 1)
    const value = decodePercent(written) ?? written
    if (name === 'limit') limitText = limitText === undefined ? value : `${limitText}&${value}`
    else afterText = afterText === undefined ? value : `${afterText}&${value}`
  }

  const limit = limitText === undefined ? Infinity : parseLimit(limitText)
  const after = afterText === undefined ? undefined : parseInt64(afterText)
  const isAfterWrong = afterText !== undefined && after === undefined
  if (limit !== undefined && !isAfterWrong) return { limit, after }

  const wrong: string[] = []
  if (limit === undefined) wrong.push(`limit must be a decimal whole number from 0 to ${MAX_INT32}, given once`)
  if (isAfterWrong) wrong.push('after must be a decimal int64, given once')
  throw new HttpError('badQuery', `In the query, ${wrong.join('; ')}.`)
}

function parseLimit(text: string): number | undefined {
  if (!/^(?:0|[1-9][0-9]{0,9})$/.test(text)) return undefined
  const limit = Number(text)
  return limit <= MAX_INT32 ? limit : undefined
}
