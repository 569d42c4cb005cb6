import { isUtf8 } from 'node:buffer'
import { HttpError } from './errors.ts'

/**
 * The error that a body is no JSON text, as something else was expected at `offset`. Where the body is not
 * UTF-8, the error is that.
 */
export function syntaxError(body: Buffer, offset: number, expected: string): HttpError {
  if (!isUtf8(body)) return notJson('is not UTF-8', 'a well-formed character', illFormedAt(body))
  if (body.length === 0) return notJson('is empty', expected, offset)
  return notJson(offset < body.length ? 'is not JSON' : 'ends too early', expected, offset)
}

/** The error that a body has one level of arrays and objects too many, which begins at `offset`. */
export function depthError(offset: number, maxDepth: number): HttpError {
  return notJson('is nested too deeply', `at most ${maxDepth} levels`, offset)
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
