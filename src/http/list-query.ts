import type { ListQuery } from '../plants/list-plants.ts'
import { INT64_DESCRIPTION, parseInt64 } from '../plants/plant.ts'
import { HttpError } from './errors.ts'

const MAX_INT32 = 2 ** 31 - 1
const INT32_DESCRIPTION = `a decimal integer from 0 to ${MAX_INT32}, without a sign or leading zeros`

/** Matches the escapes of the characters that names and values consist of: letters, digits and `-`. */
const ESCAPE = /%(?:2d|3[0-9]|[46][1-9a-f]|[57][0-9a])/gi

const isLimit = (text: string): boolean => /^(?:0|[1-9][0-9]{0,9})$/.test(text) && Number(text) <= MAX_INT32

/**
 * Parses the query of a list request. Unknown parameters are ignored, and a `limit` above `maxLimit` is capped.
 * @param maxLimit the maximum of the host; Infinity if it has none
 * @throws HttpError 40004, whose message names each invalid parameter
 */
export function parseListQuery(query: string, maxLimit: number): ListQuery {
  if (query === '') return { limit: maxLimit, after: undefined, includesId: false }
  // The most common query, which takes 0.2 µs more below.
  const onlyLimit = query.startsWith('limit=') ? query.slice('limit='.length) : ''
  if (isLimit(onlyLimit)) return { limit: Math.min(Number(onlyLimit), maxLimit), after: undefined, includesId: false }

  // `URLSearchParams` takes 10 ms and more for a query of malformed escapes.
  const parameters = query.replace(ESCAPE, decodeURIComponent).split('&')
  const problems: string[] = []
  const read = (name: string, description: string, isValid: (text: string) => boolean): string | undefined => {
    const prefix = `${name}=`
    const [first, ...others] = parameters.filter((parameter) => parameter === name || parameter.startsWith(prefix))
    const text = first?.slice(prefix.length)
    if (others.length > 0) problems.push(`${name} is repeated`)
    else if (text !== undefined && !isValid(text)) problems.push(`${name} must be ${description}`)
    return text
  }
  const limit = read('limit', INT32_DESCRIPTION, isLimit)
  const after = read('after', INT64_DESCRIPTION, (text) => parseInt64(text) !== undefined)
  const include = read('include', 'id', (text) => text === 'id')
  if (problems.length > 0) throw new HttpError('invalidQuery', `The query is invalid: ${problems.join('; ')}.`)
  return {
    limit: Math.min(Number(limit ?? Infinity), maxLimit),
    after: after === undefined ? undefined : BigInt(after),
    includesId: include !== undefined,
  }
}
