import { Buffer, isUtf8 } from 'node:buffer'

/**
 * Decodes percent-escapes (RFC 3986 section 2.1), each once; undefined if one is malformed or does not stand for UTF-8.
 * `decodeURIComponent` would throw then, and a request may hold thousands.
 */
export function decodePercent(text: string): string | undefined {
  if (!text.includes('%')) return text
  if (/%(?![0-9a-f]{2})/i.test(text)) return undefined
  const parts = text.split(/((?:%[0-9a-f]{2})+)/i)
  for (let i = 1; i < parts.length; i += 2) {
    const bytes = Buffer.from(parts[i]!.replaceAll('%', ''), 'hex')
    if (!isUtf8(bytes)) return undefined
    parts[i] = bytes.toString()
  }
  return parts.join('')
}
