import { Buffer } from 'node:buffer'

export const TEXT_DESCRIPTION = 'well-formed Unicode without U+0000'

/** Whether a value is a string that every store keeps unchanged. */
export const isValidText = (value: unknown): value is string =>
  typeof value === 'string' && value.isWellFormed() && !value.includes('\0')

/** Writes a text in UTF-8, one character for each byte: so its length counts bytes, and Node sends a plain copy. */
export function encodeUtf8(text: string): string {
  // To count the bytes also flattens a text that was put together, which takes less memory.
  return Buffer.byteLength(text) === text.length ? text : Buffer.from(text).toString('latin1')
}

export const decodeUtf8 = (bytes: string): string => Buffer.from(bytes, 'latin1').toString()
