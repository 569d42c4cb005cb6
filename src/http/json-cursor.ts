import { Buffer, isUtf8 } from 'node:buffer'
import { HttpError } from './errors.ts'

/** What {@link JsonCursor.byte} gives after the last byte. */
export const END = -1

const TAB = 0x09
const LINE_FEED = 0x0a
const CARRIAGE_RETURN = 0x0d
const SPACE = 0x20

/** A place in the bytes of a JSON text, and the error to throw where they are wrong there. */
export class JsonCursor {
  readonly bytes: Buffer
  /** The same bytes, one character for each, to cut strings out of. */
  readonly latin1: string
  /** Offset of the byte that comes next. */
  pos = 0
  /** Whether all strings so far are ASCII. Every byte outside of them has to be. */
  ascii = true

  constructor(bytes: Uint8Array) {
    this.bytes = Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
    this.latin1 = this.bytes.toString('latin1')
    if (this.latin1.startsWith('\xef\xbb\xbf')) this.pos = 3
  }

  /**
   * The byte that comes next. Only read where there is one: a single read beyond the end, which any body that
   * is cut short would bring about, makes V8 compile slower code for all later ones (20 % and more).
   */
  byte(): number {
    return this.pos < this.bytes.length ? Number(this.bytes[this.pos]) : END
  }

  /** Steps over white space, to the byte that is returned. */
  next(): number {
    let byte = this.byte()
    while (byte <= SPACE && (byte === SPACE || byte === LINE_FEED || byte === CARRIAGE_RETURN || byte === TAB)) {
      this.pos++
      byte = this.byte()
    }
    return byte
  }

  /** Steps over white space, and over `wanted` where that follows. */
  take(wanted: number): boolean {
    if (this.next() !== wanted) return false
    this.pos++
    return true
  }

  /** The error that something else was expected at this place. */
  expected(what: string): HttpError {
    const { length } = this.bytes
    if (this.pos < length) return this.error('is not JSON', what)
    return this.error(length === 0 ? 'is empty' : 'ends too early', what)
  }

  /** As {@link expected}, where the problem has a name of its own. That the text is not UTF-8 goes before it. */
  error(problem: string, expected: string): HttpError {
    if (isUtf8(this.bytes)) return notJson(problem, expected, this.pos)
    return notJson('is not UTF-8', 'a well-formed character', illFormedAt(this.bytes))
  }
}

function notJson(problem: string, expected: string, offset: number): HttpError {
  return new HttpError('notJson', `The body ${problem}: expected ${expected} at byte ${offset}.`)
}

/** Where the first sequence begins that is not well-formed UTF-8, in bytes that have one. */
function illFormedAt(bytes: Buffer): number {
  const replaced = Buffer.from(bytes.toString())
  let offset = 0
  while (bytes[offset] === replaced[offset]) offset++
  // U+FFFD may begin with the same bytes as the sequence that it replaced.
  while ((Number(replaced[offset]) & 0xc0) === 0x80) offset--
  return offset
}
