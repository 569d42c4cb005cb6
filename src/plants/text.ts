/** The rule of {@link isText}, in words for people. */
export const TEXT = 'well-formed Unicode without U+0000'

/** Whether a value is a string that every store keeps unchanged. */
export function isText(value: unknown): value is string {
  return typeof value === 'string' && value.isWellFormed() && !value.includes('\0')
}

/**
 * Writes a text in UTF-8, as a string with one character for each byte. So its length is the number of bytes, and Node
 * can send it as `latin1`, which is a plain copy.
 */
export function encodeUtf8(text: string): string {
  // To count the bytes, V8 also makes one piece of the text. A text that was put together is a tree of its parts
  // before, and takes more memory.
  return Buffer.byteLength(text) === text.length ? text : Buffer.from(text).toString('latin1')
}

/** Reads what {@link encodeUtf8} wrote. */
export function decodeUtf8(bytes: string): string {
  return Buffer.from(bytes, 'latin1').toString()
}
