import { END, type JsonCursor } from './json-cursor.ts'

const SPACE = 0x20
const QUOTE = 0x22
const ZERO = 0x30
const NINE = 0x39
const BACKSLASH = 0x5c
const LOWER_A = 0x61
const LOWER_F = 0x66
const LOWER_U = 0x75

/** What may follow a backslash, and then what the two stand for. `u` is another matter. */
const ESCAPES: ReadonlyMap<number, string> = new Map(
  ['""', '\\\\', '//', 'b\b', 'f\f', 'n\n', 'r\r', 't\t'].map((pair) => [pair.charCodeAt(0), pair.slice(1)]),
)

/**
 * Reads a string (RFC 8259 section 7) from its opening quote on. Bytes beyond ASCII are taken as they are:
 * that the whole text is well-formed UTF-8 is for the caller to find out.
 */
export function readString(cursor: JsonCursor): string {
  cursor.pos++
  let text = readUnescaped(cursor)
  while (cursor.byte() === BACKSLASH) text += readEscape(cursor) + readUnescaped(cursor)
  cursor.pos++
  return text
}

/** Reads what comes before the next escape, or else before the closing quote. */
function readUnescaped(cursor: JsonCursor): string {
  const { bytes, pos: start } = cursor
  const { length } = bytes
  let pos = start
  let byte = END
  let bits = 0
  for (;;) {
    byte = pos < length ? Number(bytes[pos]) : END
    // One comparison for each lower-case letter, the most frequent bytes.
    if (byte <= BACKSLASH && (byte === BACKSLASH || byte === QUOTE || byte < SPACE)) break
    bits |= byte
    pos++
  }
  cursor.pos = pos
  if (byte === END) throw cursor.expected('the end of the string')
  if (byte < SPACE) throw cursor.expected('an escape for a control character')
  if (bits < 0x80) return cursor.latin1.slice(start, pos)
  cursor.ascii = false
  return bytes.toString('utf8', start, pos)
}

function readEscape(cursor: JsonCursor): string {
  cursor.pos++
  const byte = cursor.byte()
  const character = ESCAPES.get(byte)
  if (character === undefined && byte !== LOWER_U) throw cursor.expected('one of "\\/bfnrtu')
  cursor.pos++
  return character ?? readCodeUnit(cursor)
}

/** Reads the four digits of a UTF-16 code unit, which may be one half of a surrogate pair, or a lone one. */
function readCodeUnit(cursor: JsonCursor): string {
  let unit = 0
  for (let i = 0; i < 4; i++) {
    const digit = hexDigit(cursor.byte())
    if (digit === undefined) throw cursor.expected('a hexadecimal digit')
    unit = unit * 16 + digit
    cursor.pos++
  }
  return String.fromCharCode(unit)
}

function hexDigit(byte: number): number | undefined {
  if (byte >= ZERO && byte <= NINE) return byte - ZERO
  const lower = byte | 0x20
  return lower >= LOWER_A && lower <= LOWER_F ? lower - LOWER_A + 10 : undefined
}
