import { HTTP_ERRORS } from './errors.ts'
import { TCHAR } from './header-fields.ts'

/** RFC 9110 section 5.6.6: `name=value`, where the value is a token or a quoted string. The charset has to be UTF-8. */
const MEDIA_TYPE_PARAMETER = String.raw`charset=(?:utf-?8|"\\?u\\?t\\?f(?:\\?-)?\\?8")|(?!charset=)${TCHAR}+=(?:${TCHAR}+|"(?:[^"\\]|\\.)*")`

/**
 * Parameters may be empty, so semicolons may be repeated. The pattern is unambiguous, to avoid catastrophic
 * backtracking.
 */
const JSON_MEDIA_TYPE = new RegExp(
  String.raw`^application/json(?:[ \t]*;[ \t;]*(?:${MEDIA_TYPE_PARAMETER}))*[ \t;]*$`,
  'i',
)
/** Empty list elements are ignored (RFC 9110 section 5.6.1.2). */
const IDENTITY_CODING = /^(?:[ \t,]|identity(?=[ \t]*(?:,|$)))*$/i

/**
 * @throws HttpError 41500 unless the Content-Type is JSON in UTF-8; 41501 for a Content-Encoding other than `identity`
 */
export function checkContent(contentType: string | undefined, contentEncoding: string): void {
  if (contentType !== 'application/json' && !JSON_MEDIA_TYPE.test(contentType ?? ''))
    throw HTTP_ERRORS.unsupportedContentType
  if (contentEncoding !== '' && !IDENTITY_CODING.test(contentEncoding)) throw HTTP_ERRORS.unsupportedContentEncoding
}
