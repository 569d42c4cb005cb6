import { Buffer } from 'node:buffer'

export const TEXT_DESCRIPTION = 'well-formed Unicode without U+0000'

/** Whether a value is a string that every store can preserve unchanged. */
export const isValidText = (value: unknown): value is string =>
  typeof value === 'string' && value.isWellFormed() && !value.includes('\0')

/**
 * Encodes text as UTF-8 with one character per byte, so that `length` counts bytes and Node can send the text as
 * `latin1`.
 */
export function encodeUtf8(text: string): string {
  // `Buffer.byteLength` also flattens a concatenated string, which then takes less memory.
  return Buffer.byteLength(text) === text.length ? text : Buffer.from(text).toString('latin1')
}

export const decodeUtf8 = (bytes: string): string => Buffer.from(bytes, 'latin1').toString()
