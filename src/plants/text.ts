/** What {@link isText} asks of a string, in words for people. */
export const TEXT = 'well-formed Unicode without U+0000'

/** Whether a value is a string that every store keeps unchanged. */
export function isText(value: unknown): value is string {
  return typeof value === 'string' && value.isWellFormed() && !value.includes('\0')
}

/**
 * Writes a text in UTF-8, as a string with one character for each byte: its length is that of the bytes, and it is sent
 * as `latin1`, which copies.
 */
export function encodeUtf8(text: string): string {
  // Asking for the bytes also has V8 lay the text out in one piece: a text that was put together is a tree of its parts,
  // which takes more memory.
  return Buffer.byteLength(text) === text.length ? text : Buffer.from(text).toString('latin1')
}

/** Reads what {@link encodeUtf8} wrote. */
export function decodeUtf8(bytes: string): string {
  return Buffer.from(bytes, 'latin1').toString()
}
