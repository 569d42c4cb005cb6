import { INVISIBLE_CHARACTERS, LEADING_OR_TRAILING_STRAY } from '../../plants/stray-characters.ts'

/** Characters that nobody puts into a path on purpose, such as the end of a line of a CRLF file. */
const CONTROL_CHARACTER = /[\p{Cc}\p{Cs}\p{Zl}\p{Zp}]/u
const INVISIBLE_CHARACTER = new RegExp(INVISIBLE_CHARACTERS, 'u')
const STRAY_CHARACTER = new RegExp(LEADING_OR_TRAILING_STRAY, 'u')
/** URL schemes. Except for a lowercase `file:`, SQLite would treat them as part of the file name. */
const URL_SCHEME = /^(?:file|sqlite):/i
/** A URI as SQLite reads it (sqlite.org/uri.html): its authority, its path, and its parameters without the fragment. */
const FILE_URI = /^file:(?:\/\/([^/]*))?([^?#]*)(\??[^#]*)/

/** The file that a path of SQLite names. */
export interface DatabasePath {
  /** The path of the file, without escapes; undefined if the database is in memory. */
  readonly file: string | undefined
  /** Whether SQLite creates a missing file. */
  readonly canCreate: boolean
}

/**
 * Reads a path or a `file:` URI as SQLite does.
 * @throws TypeError if it seems to contain something other than a path: SQLite would create a file of that name
 */
export function parseSqlitePath(path: string): DatabasePath {
  const invalidPath = (problem: string): TypeError => new TypeError(`SQLite path ${quotePath(path)} ${problem}`)
  const checkCharacters = (text: string): void => {
    if (CONTROL_CHARACTER.test(text)) throw invalidPath('contains a control character')
    if (STRAY_CHARACTER.test(text))
      throw invalidPath('begins or ends with white space, an invisible character or a quote')
    if (INVISIBLE_CHARACTER.test(text)) throw invalidPath('contains an invisible character')
    // Otherwise two paths that aren't UTF-8 could name the same file.
    if (text.includes('\ufffd')) throw invalidPath('contains U+FFFD, which replaces bytes that are not UTF-8')
  }
  checkCharacters(path)
  if (URL_SCHEME.test(path) && !path.startsWith('file:')) {
    throw invalidPath('begins with a URL scheme; write only the path, or a URI that begins with "file:"')
  }
  const [, authority = '', encodedPath, parameters] = FILE_URI.exec(path) ?? []
  if (encodedPath === undefined) {
    if (path.includes('?')) throw invalidPath('contains "?"; only a file: URI can have parameters')
    return { file: path === ':memory:' ? undefined : path, canCreate: true }
  }
  if (authority !== '' && authority !== 'localhost') throw invalidPath('names a host; write file:/path or file:///path')
  const file = decodePercentEncoding(encodedPath)
  if (file === undefined) throw invalidPath('has a malformed percent-escape')
  checkCharacters(file)
  if (file === ':memory:' || /[?&](?:mode=memory|vfs=memdb)\b/.test(parameters!))
    return { file: undefined, canCreate: true }
  // SQLite would open a temporary file.
  if (file === '') throw invalidPath('names no file')
  return { file, canCreate: !/[?&]mode=r[ow]\b/.test(parameters!) }
}

function decodePercentEncoding(text: string): string | undefined {
  try {
    return decodeURIComponent(text)
  } catch {
    return undefined
  }
}

/** Quotes a path, and escapes what a terminal or a log would not show. */
function quotePath(path: string): string {
  const hidden = /(?! )[\x7f-\x9f\p{Cf}\p{Z}]/gu
  return JSON.stringify(path).replace(hidden, (character) => `\\u{${character.codePointAt(0)!.toString(16)}}`)
}
