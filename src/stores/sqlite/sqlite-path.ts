import { INVISIBLE_CHARACTERS, LEADING_OR_TRAILING_STRAY } from '../../legacy/plants/stray-characters.ts'

/** Characters that only get into a path by mistake, such as the carriage return of a CRLF file. */
const CONTROL_CHARACTER = /[\p{Cc}\p{Cs}\p{Zl}\p{Zp}]/u
const INVISIBLE_CHARACTER = new RegExp(INVISIBLE_CHARACTERS, 'u')
const STRAY_CHARACTER = new RegExp(LEADING_OR_TRAILING_STRAY, 'u')
/**
 * Matches URI schemes. All but a lowercase `file:` are rejected, because SQLite would treat them as part of the file
 * name.
 */
const URL_SCHEME = /^(?:file|sqlite):/i
/** A URI as SQLite parses it (sqlite.org/uri.html). Captures the authority, the path and the query parameters. */
const FILE_URI = /^file:(?:\/\/([^/]*))?([^?#]*)(\??[^#]*)/

/** A parsed SQLite path or `file:` URI. */
export interface DatabasePath {
  /** The decoded file path; undefined for an in-memory database. */
  readonly file: string | undefined
  /** Whether SQLite would create the file if it's missing. */
  readonly canCreate: boolean
}

/**
 * Parses a path or a `file:` URI the way SQLite does.
 * @throws TypeError if the text is probably not meant as a path, for example another URL or a quoted path: SQLite would
 *   create a file of that name
 */
export function parseSqlitePath(path: string): DatabasePath {
  const invalidPath = (problem: string): TypeError => new TypeError(`SQLite path ${quotePath(path)} ${problem}`)
  const checkCharacters = (text: string): void => {
    if (CONTROL_CHARACTER.test(text)) throw invalidPath('contains a control character')
    if (STRAY_CHARACTER.test(text))
      throw invalidPath('begins or ends with white space, an invisible character or a quote')
    if (INVISIBLE_CHARACTER.test(text)) throw invalidPath('contains an invisible character')
    // Node decodes invalid UTF-8 in an environment variable as U+FFFD, so two different paths could become the same.
    if (text.includes('\ufffd')) throw invalidPath('contains U+FFFD, which replaces bytes that are not UTF-8')
  }
  checkCharacters(path)
  if (URL_SCHEME.test(path) && !path.startsWith('file:')) {
    throw invalidPath('begins with a URL scheme; use a plain path, or a URI that begins with "file:"')
  }
  const [, authority = '', encodedPath, parameters] = FILE_URI.exec(path) ?? []
  if (encodedPath === undefined) {
    if (path.includes('?')) throw invalidPath('contains "?"; only a file: URI can have parameters')
    return { file: path === ':memory:' ? undefined : path, canCreate: true }
  }
  if (authority !== '' && authority !== 'localhost')
    throw invalidPath('contains a host; use file:/path or file:///path')
  const file = decodePercentEncoding(encodedPath)
  if (file === undefined) throw invalidPath('has a malformed percent-escape')
  checkCharacters(file)
  if (file === ':memory:' || /[?&](?:mode=memory|vfs=memdb)\b/.test(parameters!))
    return { file: undefined, canCreate: true }
  // SQLite would open a temporary database.
  if (file === '') throw invalidPath('contains no file name')
  return { file, canCreate: !/[?&]mode=r[ow]\b/.test(parameters!) }
}

function decodePercentEncoding(text: string): string | undefined {
  try {
    return decodeURIComponent(text)
  } catch {
    return undefined
  }
}

/** Quotes a path, and escapes the characters that terminals and logs don't show. */
function quotePath(path: string): string {
  const hidden = /(?! )[\x7f-\x9f\p{Cf}\p{Z}]/gu
  return JSON.stringify(path).replace(hidden, (character) => `\\u{${character.codePointAt(0)!.toString(16)}}`)
}
