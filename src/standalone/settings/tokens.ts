import { digestToken, type Caller } from '../../http/authentication.ts'
import { SettingError } from './variables.ts'

/** Callers by the digest of their token. */
export type Tokens = ReadonlyMap<string, Caller>

/**
 * A token (`b64token` in RFC 6750) contains no colon, so the last colon ends the owner. It can contain `=` only at its
 * end, so no token begins with `sha256=` and goes on.
 */
const ENTRY =
  /^(?<owner>(?!#)[^\s,"'`\p{Cc}]+):(?:sha256=(?<digest>[0-9A-Fa-f]{64})|(?!sha256=)(?<token>[\w\-.~+/]*=*))(?<read>[ \t]+read)?$/u

export const ENTRY_FORMAT =
  'owner:token or owner:sha256=<64 hexadecimal digits>, followed by " read" if the token is read-only'

/** The tokens that result from an unset variable. Accepting them is never intended. */
const UNSET_TOKENS: ReadonlySet<string> = new Set(['', 'undefined', 'null'].map(digestToken))

export function parseTokenList(variable: string, list: string): Tokens {
  return parseEntries(list.split(',').map((entry, i) => [`${variable}: entry ${i + 1}`, entry.trim()]))
}

/** Parses a file with one entry per line. */
export function parseTokenFile(variable: string, text: string): Tokens {
  const lines = text.split('\n').map((line, i) => [`${variable}: line ${i + 1}`, line.trim()] as const)
  const entries = lines.filter(([, line]) => line !== '' && !line.startsWith('#'))
  if (entries.length === 0) throw new SettingError(`${variable} must contain at least one entry, such as owner:token`)
  return parseEntries(entries)
}

/** @throws SettingError with the position of the invalid entry, but never its text, which might contain a token */
function parseEntries(entries: readonly (readonly [position: string, entry: string])[]): Tokens {
  const tokens = new Map<string, Caller>()
  for (const [position, entry] of entries) {
    const groups = ENTRY.exec(entry)?.groups
    if (groups === undefined) throw new SettingError(`${position} must be ${ENTRY_FORMAT}`)
    const { owner, digest, token, read } = groups as { owner: string } & Partial<Record<string, string>>
    const tokenDigest = digest === undefined ? digestToken(token!) : Buffer.from(digest, 'hex').toString('latin1')
    if (UNSET_TOKENS.has(tokenDigest)) {
      throw new SettingError(`${position} has an empty token, "undefined" or "null"; check for an unset variable`)
    }
    if (tokens.has(tokenDigest)) throw new SettingError(`${position} repeats the token of an earlier entry`)
    tokens.set(tokenDigest, { owner, access: read === undefined ? 'write' : 'read' })
  }
  return tokens
}
