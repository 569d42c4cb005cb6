import { B64TOKEN } from '../../legacy/http/bearer.ts'
import { digestToken, UNSET_TOKENS, type Caller } from '../../legacy/http/caller.ts'
import { runToCompletion, type CooperativeTask } from '../../legacy/scheduler.ts'
import { settingFile, type FileVariable } from './setting-file.ts'
import { SettingError, type Variable } from './variables.ts'

/** Callers by the digest of their token. */
export type Tokens = ReadonlyMap<string, Caller>

/**
 * A token can't contain a colon, so the last colon marks the end of the owner. An owner can't contain characters that
 * might be meant to separate entries, or invisible characters, which are easily copied from a web page by accident.
 */
const ENTRY_PATTERN = new RegExp(
  String.raw`^(?<owner>(?!#)[^\s,"'\x60\x00-\x1f\x7f-\x9f\u00ad\u200b\u2060]+):(?:(?:sha256=|\$sha256\$)(?<digest>[0-9A-Fa-f]{64})|(?<token>${B64TOKEN}))(?<read>[ \t]+read)?$`,
)

const ENTRY_FORMAT =
  'owner:token or owner:sha256=<64 hexadecimal digits>, followed by " read" if the token is read-only. ' +
  'An owner must not contain white space, commas or quotes, or begin with "#". ' +
  'A token must consist of letters, digits and -._~+/, with any number of "=" at its end'

const MISREAD_DIGEST_MESSAGE =
  'looks like a digest, but would be read as a token. Write the digest as owner:sha256=<64 hexadecimal digits>; ' +
  'the older form owner:$sha256$<digits> needs single quotes, or a shell expands its $'

/**
 * Matches the algorithm's name in a digest whose format isn't supported. The `s` is optional, because `make` expands
 * the `$s` in `$sha256$` to nothing.
 */
const DIGEST_NAME = /ha-?256/i
/**
 * Matches an owner that ends with the name of a digest. In `ada:sha256:2cf2…`, for example, the last colon marks the end
 * of the owner.
 */
const DIGEST_OWNER = /(?:^|:)\$?sha-?256\$?$/i

/**
 * Matches what a shell leaves of `$sha256$2434cf…`. The shell expands the parameter `$2` (or `$0`, to a name such as
 * `zsh`), and 63 digits remain. Fewer digits remain where parameter numbers may have several digits, as in zsh and in
 * Dockerfiles. More remain if the value of the parameter itself ends with digits, as a process ID does.
 */
const EXPANDED_DIGEST = /(?:^|[^0-9a-f])(?:[a-f][0-9a-f]{48,61}|[0-9a-f]{63}|[0-9a-f]{65,71})$/i
/**
 * Matches what remains of a digest in which a shell expanded a variable: the variable's value and then 63 digits. Here,
 * the value ends with a letter that is also a hexadecimal digit, such as the `d` in `prod`.
 */
const EXPANDED_DIGEST_AFTER_WORD = /[g-z][a-f][0-9a-f]{63}$/i

/**
 * Returns whether a plain token looks like a digest, or like the remains of a digest in which a shell has expanded
 * variables. Digests aren't secret, so they must never be accepted as tokens.
 */
function isLikelyDigest(owner: string, token: string): boolean {
  if (DIGEST_NAME.test(token) || DIGEST_OWNER.test(owner)) return true
  // Only the end of the token is searched, because searching all of a long token for digits takes quadratic time.
  const tail = token.slice(-72)
  if (EXPANDED_DIGEST.test(tail) || EXPANDED_DIGEST_AFTER_WORD.test(tail)) return true
  // In a script, `$0` expands to the path of the script, such as `./deploy.sh`.
  return token.includes('/') && /[0-9a-f]{63}$/i.test(tail)
}

/** Digests of the tokens that result from an unset variable. Accepting these tokens is never intended. */
const UNSET_TOKEN_DIGESTS: ReadonlySet<string> = new Set(['', ...UNSET_TOKENS].map(digestToken))

export function tokenList(name: string): Variable<Tokens | undefined> {
  const description = 'the bearer tokens and their owners; without any, the server generates a demo token'
  const expects = 'comma-separated entries: owner:token, "owner:token read" (read-only) or owner:sha256=<digest>'
  const parse = (value: string): Tokens => runToCompletion(parseTokens(name, 'entry', value))
  return { name, defaultValue: undefined, description, expects, parse }
}

export function tokenFile(name: string, listVariable: string): FileVariable<Tokens> {
  const description = `token entries in a file, one per line, instead of ${listVariable}; the file is reread when it changes`
  return settingFile(name, description, (text) => parseTokens(name, 'line', text))
}

/**
 * Parses token entries. Errors contain the number of the invalid entry, but never its text, which might contain a
 * token.
 */
function* parseTokens(variable: string, unit: 'entry' | 'line', text: string): CooperativeTask<Tokens> {
  try {
    return yield* parseEntries(variable, unit, text)
  } finally {
    // V8 keeps the last matched text in memory (`RegExp.input`) until another match replaces it.
    EMPTY_PATTERN.test('')
  }
}

const EMPTY_PATTERN = /^$/

function* parseEntries(variable: string, unit: 'entry' | 'line', text: string): CooperativeTask<Tokens> {
  const tokens = new Map<string, Caller>()
  let entryNumber = 1
  let previousEnd = 0
  for (const { 0: rawEntry, index } of text.matchAll(unit === 'entry' ? /[^,]+/g : /[^\n]+/g)) {
    yield
    // Between two matches there are only separators, and each separator begins a new entry, even an empty one.
    entryNumber += index - previousEnd
    previousEnd = index + rawEntry.length
    const entry = rawEntry.trim()
    if (entry === '' || (unit === 'line' && entry.startsWith('#'))) continue
    const position = `${variable}: ${unit} ${entryNumber}`
    if (entry.includes('\ufffd')) {
      throw new SettingError(`${position} contains U+FFFD, which replaces bytes that are not UTF-8; use UTF-8`)
    }
    const groups = ENTRY_PATTERN.exec(entry)?.groups
    if (groups === undefined) throw new SettingError(`${position} must be ${ENTRY_FORMAT}`)
    const { owner, digest, token, read: readSuffix } = groups as { owner: string } & Partial<Record<string, string>>
    if (token !== undefined && isLikelyDigest(owner, token)) {
      throw new SettingError(`${position} ${MISREAD_DIGEST_MESSAGE}`)
    }
    const tokenDigest = token === undefined ? Buffer.from(digest!, 'hex').toString('latin1') : digestToken(token)
    if (UNSET_TOKEN_DIGESTS.has(tokenDigest))
      throw new SettingError(
        `${position} has the token "undefined" or "null", or an empty one; check for an unset variable`,
      )
    if (tokens.has(tokenDigest)) throw new SettingError(`${position} repeats the token of an earlier entry`)
    // Copy the owner: a slice of the text would keep the whole text, with all tokens, in memory.
    tokens.set(tokenDigest, {
      owner: Buffer.from(owner).toString(),
      access: readSuffix === undefined ? 'write' : 'read',
    })
  }
  if (tokens.size === 0) throw new SettingError(`${variable} must contain at least one entry, such as owner:token`)
  return tokens
}
