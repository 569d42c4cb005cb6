import { HTTP_ERRORS } from './errors.ts'
import { TCHAR } from './header-fields.ts'

/** RFC 9110 section 5.6.6: one parameter after another, each `;name=value`, its value a token or a quoted string. */
const PARAMETER = new RegExp(String.raw`[ \t]*;[ \t]*(?:(${TCHAR}+)=(?:(${TCHAR}+)|"((?:[^"\\]|\\.)*)"))?`, 'y')

/** @throws HttpError 41500 unless the body is said to be JSON, in UTF-8; 41501 if a content coding was applied */
export function checkContent(contentType: string | undefined, contentEncoding: string): void {
  if (contentType !== 'application/json' && !isJson(contentType ?? '')) throw HTTP_ERRORS.wrongContentType
  if (contentEncoding !== '' && !isIdentity(contentEncoding)) throw HTTP_ERRORS.wrongContentEncoding
}

function isJson(contentType: string): boolean {
  const type = /^application\/json(?=[ \t]*(?:;|$))/i.exec(contentType)
  if (type === null) return false

  PARAMETER.lastIndex = type[0].length
  while (PARAMETER.lastIndex < contentType.length) {
    const rest = PARAMETER.lastIndex
    const parameter = PARAMETER.exec(contentType)
    if (parameter === null) return contentType.slice(rest).trim() === ''
    const [, name = '', token, quoted = ''] = parameter
    const value = token ?? quoted.replace(/\\(.)/g, '$1')
    if (name.toLowerCase() === 'charset' && !/^utf-?8$/i.test(value)) return false
  }
  return true
}

/**
 * An empty element of a list does not count (RFC 9110 section 5.6.1.2). In the pattern, a name divides the two runs of
 * spaces: side by side they could share the same spaces in many ways, and trying all takes quadratic time.
 */
function isIdentity(contentEncoding: string): boolean {
  return contentEncoding.split(',').every((coding) => /^[ \t]*(?:identity[ \t]*)?$/i.test(coding))
}
