import { INVISIBLE, STRAY_END } from '../../plants/stray-characters.ts'

/** Characters that nobody puts into a path on purpose, such as the end of a line of a CRLF file. */
const CONTROL = /[\p{Cc}\p{Cs}\p{Zl}\p{Zp}]/u
const INVISIBLE_CHARACTER = new RegExp(INVISIBLE, 'u')
const STRAY_CHARACTER = new RegExp(STRAY_END, 'u')
/** URL schemes. Except for a lowercase `file:`, SQLite would treat them as part of the file name. */
const SCHEME = /^(?:file|sqlite):/i
/** A URI as SQLite reads it (sqlite.org/uri.html): its authority, its path, and its parameters without the fragment. */
const URI = /^file:(?:\/\/([^/]*))?([^?#]*)(\??[^#]*)/

/** The file that a path of SQLite names. */
export interface DatabasePath {
  /** The path of the file, without escapes; undefined if the database is in memory. */
  readonly file: string | undefined
  /** Whether SQLite creates a missing file. */
  readonly creates: boolean
}

/**
 * Reads a path or a `file:` URI as SQLite does.
 * @throws TypeError if it seems to contain something other than a path: SQLite would create a file of that name
 */
export function readPath(path: string): DatabasePath {
  const fail = (problem: string): TypeError => new TypeError(`SQLite path ${escape(path)} ${problem}`)
  const check = (text: string): void => {
    if (CONTROL.test(text)) throw fail('contains a control character')
    if (STRAY_CHARACTER.test(text)) throw fail('begins or ends with white space, an invisible character or a quote')
    if (INVISIBLE_CHARACTER.test(text)) throw fail('contains an invisible character')
    // Otherwise two paths that aren't UTF-8 could name the same file.
    if (text.includes('\ufffd')) throw fail('contains U+FFFD, which replaces bytes that are not UTF-8')
  }
  check(path)
  if (SCHEME.test(path) && !path.startsWith('file:')) {
    throw fail('begins with a URL scheme; write only the path, or a URI that begins with "file:"')
  }
  const [, authority = '', encoded, parameters] = URI.exec(path) ?? []
  if (encoded === undefined) {
    if (path.includes('?')) throw fail('contains "?"; only a file: URI can have parameters')
    return { file: path === ':memory:' ? undefined : path, creates: true }
  }
  if (authority !== '' && authority !== 'localhost') throw fail('names a host; write file:/path or file:///path')
  const file = decode(encoded)
  if (file === undefined) throw fail('has a malformed percent-escape')
  check(file)
  if (file === ':memory:' || /[?&](?:mode=memory|vfs=memdb)\b/.test(parameters!))
    return { file: undefined, creates: true }
  // SQLite would open a temporary file.
  if (file === '') throw fail('names no file')
  return { file, creates: !/[?&]mode=r[ow]\b/.test(parameters!) }
}

function decode(text: string): string | undefined {
  try {
    return decodeURIComponent(text)
  } catch {
    return undefined
  }
}

/** Quotes a path, and escapes what a terminal or a log would not show. */
function escape(path: string): string {
  const hidden = /(?! )[\x7f-\x9f\p{Cf}\p{Z}]/gu
  return JSON.stringify(path).replace(hidden, (character) => `\\u{${character.codePointAt(0)!.toString(16)}}`)
}
