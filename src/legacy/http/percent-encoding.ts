import { Buffer } from 'node:buffer'

/** Decodes percent-escapes once (RFC 3986 section 2.1). Returns undefined if an escape is malformed or isn't UTF-8. */
export function decodePercent(text: string): string | undefined {
  if (!text.includes('%')) return text
  try {
    return decodeURIComponent(text)
  } catch {
    return undefined
  }
}

/**
 * Returns a regular expression that matches a string with or without percent-escapes; "/", "?" and "%" match only when
 * escaped. Matching takes linear time.
 */
export function toEscapablePattern(text: string): string {
  const patterns = Array.from(text, (character) => {
    const escape = Buffer.from(character).toString('hex').replace(/../g, '%$&')
    const escapePattern = escape.replace(/[a-f]/g, (digit) => `[${digit}${digit.toUpperCase()}]`)
    return /[/?%]/.test(character) ? escapePattern : `(?:${character.replace(/\W/g, '\\$&')}|${escapePattern})`
  })
  return patterns.join('')
}
