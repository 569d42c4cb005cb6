import { Buffer, isUtf8 } from 'node:buffer'
import { HttpError } from '../errors.ts'

/** The error of a body that is no JSON text: what was expected at `offset`. If the body is not UTF-8, it says that. */
export function jsonError(body: Buffer, offset: number, expected: string, problem?: string): HttpError {
  if (isUtf8(body)) return notJson(problem ?? problemAt(body, offset), expected, offset)
  return notJson('is not UTF-8', 'a well-formed character', illFormedAt(body))
}

function problemAt(body: Buffer, offset: number): string {
  if (offset < body.length) return 'is not JSON'
  return offset === 0 ? 'is empty' : 'ends too early'
}

function notJson(problem: string, expected: string, offset: number): HttpError {
  return new HttpError('notJson', `The body ${problem}: expected ${expected} at byte ${offset}.`)
}

/** The offset of the first sequence that is not well-formed UTF-8, in bytes that have one. */
function illFormedAt(bytes: Buffer): number {
  const replaced = Buffer.from(bytes.toString())
  let offset = 0
  while (bytes[offset] === replaced[offset]) offset++
  // U+FFFD may begin with the same bytes as the sequence that it replaced.
  while ((Number(replaced[offset]) & 0xc0) === 0x80) offset--
  return offset
}
