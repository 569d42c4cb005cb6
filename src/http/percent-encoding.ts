import { Buffer } from 'node:buffer'

/** Decodes percent-escapes (RFC 3986 section 2.1), each once; undefined if one is malformed or does not stand for UTF-8. */
export function decodePercent(text: string): string | undefined {
  if (!text.includes('%')) return text
  try {
    return decodeURIComponent(text)
  } catch {
    return undefined
  }
}

/** A pattern for a text whose characters may be percent-escaped, and "/", "?" and "%" must be. Takes linear time. */
export function toEscapablePattern(text: string): string {
  const patterns = Array.from(text, (character) => {
    const escape = Buffer.from(character).toString('hex').replace(/../g, '%$&')
    const escapePattern = escape.replace(/[a-f]/g, (digit) => `[${digit}${digit.toUpperCase()}]`)
    return /[/?%]/.test(character) ? escapePattern : `(?:${character.replace(/\W/g, '\\$&')}|${escapePattern})`
  })
  return patterns.join('')
}
