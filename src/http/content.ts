import { HTTP_ERRORS } from './errors.ts'
import { TCHAR } from './header-fields.ts'

/** RFC 9110 section 5.6.6: `name=value`, its value a token or a quoted string. The charset can only be UTF-8. */
const MEDIA_TYPE_PARAMETER = String.raw`charset=(?:utf-?8|"\\?u\\?t\\?f(?:\\?-)?\\?8")|(?!charset=)${TCHAR}+=(?:${TCHAR}+|"(?:[^"\\]|\\.)*")`

/** Behind a semicolon nothing need follow. No text matches in two ways: to try them all would take long. */
const JSON_MEDIA_TYPE = new RegExp(
  String.raw`^application/json(?:[ \t]*;[ \t;]*(?:${MEDIA_TYPE_PARAMETER}))*[ \t;]*$`,
  'i',
)
/** An empty element of a list does not count (RFC 9110 section 5.6.1.2). */
const IDENTITY_CODING = /^(?:[ \t,]|identity(?=[ \t]*(?:,|$)))*$/i

/** @throws HttpError 41500 unless the body is said to be JSON, in UTF-8; 41501 if a content coding was applied */
export function checkContent(contentType: string | undefined, contentEncoding: string): void {
  if (contentType !== 'application/json' && !JSON_MEDIA_TYPE.test(contentType ?? ''))
    throw HTTP_ERRORS.unsupportedContentType
  if (contentEncoding !== '' && !IDENTITY_CODING.test(contentEncoding)) throw HTTP_ERRORS.unsupportedContentEncoding
}
