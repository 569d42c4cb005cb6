import { B64TOKEN } from '../../http/bearer.ts'
import { digestToken, UNSET_TOKENS, type Caller } from '../../http/caller.ts'
import { runToCompletion, type CooperativeTask } from '../../scheduler.ts'
import { settingFile, type FileVariable } from './setting-file.ts'
import { SettingError, type Variable } from './variables.ts'

export type Tokens = ReadonlyMap<string, Caller>

/**
 * A token can't contain a colon, so the last colon ends the owner. An owner can't contain a character that could separate
 * two entries, or an invisible character that was copied from a web page.
 */
const ENTRY_PATTERN = new RegExp(
  String.raw`^(?<owner>(?!#)[^\s,"'\x60\x00-\x1f\x7f-\x9f\u00ad\u200b\u2060]+):(?:(?:sha256=|\$sha256\$)(?<digest>[0-9A-Fa-f]{64})|(?<token>${B64TOKEN}))(?<read>[ \t]+read)?$`,
)

const ENTRY_FORMAT =
  'owner:token or owner:sha256= with 64 hexadecimal digits, and " read" behind it if the token may only read. ' +
  'An owner has no white space, comma or quote and does not begin with "#"; ' +
  'a token has letters, digits and -._~+/, then any "="'

const MISREAD_DIGEST_PROBLEM =
  'takes a digest as owner:sha256= with 64 hexadecimal digits; in another form, or if a shell has expanded the $ of ' +
  'owner:$sha256$, it would become a token'

/** Part of the name of a digest in a form that isn't accepted. make expands the `$s` of `$sha256$`. */
const DIGEST_NAME = /ha-?256/i
/** The end of an owner before such a digest: in `ada:sha256:2cf2…`, the last colon divides the entry. */
const DIGEST_OWNER = /(?:^|:)\$?sha-?256\$?$/i

/**
 * What remains of `$sha256$2434cf…` in shells: the value of the parameter `$2`, or of `$0`, such as `zsh`, and 63 digits;
 * or fewer where the number of a parameter can have several digits, as in zsh and in Dockerfiles. There are more digits if
 * the value ends with some, as a process ID does.
 */
const EXPANDED_DIGEST = /(?:^|[^0-9a-f])(?:[a-f][0-9a-f]{48,61}|[0-9a-f]{63}|[0-9a-f]{65,71})$/i
/** The same after a value whose last letter could be a digit, such as `prod`. */
const EXPANDED_DIGEST_AFTER_WORD = /[g-z][a-f][0-9a-f]{63}$/i

/** Whether a plain token looks like a digest or the rest of one. Digests aren't secret, so they must never be tokens. */
function isLikelyDigest(owner: string, token: string): boolean {
  if (DIGEST_NAME.test(token) || DIGEST_OWNER.test(owner)) return true
  // Searching all of a long token for digits would take quadratic time.
  const tail = token.slice(-72)
  if (EXPANDED_DIGEST.test(tail) || EXPANDED_DIGEST_AFTER_WORD.test(tail)) return true
  // `$0` is the path of a script.
  return token.includes('/') && /[0-9a-f]{63}$/i.test(tail)
}

/** Tokens that an unset variable turns into. No program means to let in a client that sends one. */
const UNSET_TOKEN_DIGESTS: ReadonlySet<string> = new Set(['', ...UNSET_TOKENS].map(digestToken))

export function tokenList(name: string): Variable<Tokens | undefined> {
  const expects =
    'owner:token, "owner:token read" or owner:sha256=<digest>, separated by commas; ' +
    'by default a random token for the owner demo'
  const parse = (value: string): Tokens => runToCompletion(parseTokens(name, 'entry', value))
  return { name, defaultValue: undefined, expects, parse }
}

export function tokenFile(name: string, listVariable: string): FileVariable<Tokens> {
  const expects = `a file with such an entry in each line, in place of ${listVariable}; read again when it changes`
  return settingFile(name, expects, (text) => parseTokens(name, 'line', text))
}

/** Its errors give the number of a wrong entry, and do not quote it: it may hold a token. */
function* parseTokens(variable: string, unit: 'entry' | 'line', text: string): CooperativeTask<Tokens> {
  try {
    return yield* parseEntries(variable, unit, text)
  } finally {
    // V8 keeps the text that was matched last (`RegExp.input`) until something else matches.
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
    // Between two pieces stands nothing but what divides entries.
    entryNumber += index - previousEnd
    previousEnd = index + rawEntry.length
    const entry = rawEntry.trim()
    if (entry === '' || (unit === 'line' && entry.startsWith('#'))) continue
    const position = `${unit} ${entryNumber}`
    if (entry.includes('\ufffd')) {
      throw new SettingError(variable, `takes text in UTF-8; ${position} contains U+FFFD, which replaces other bytes`)
    }
    const groups = ENTRY_PATTERN.exec(entry)?.groups
    if (groups === undefined) throw new SettingError(variable, `takes ${ENTRY_FORMAT}; ${position} is not of that form`)
    const { owner, digest, token, read: readSuffix } = groups as { owner: string } & Partial<Record<string, string>>
    if (token !== undefined && isLikelyDigest(owner, token)) {
      throw new SettingError(variable, `${MISREAD_DIGEST_PROBLEM}; ${position} looks like that`)
    }
    const tokenDigest = token === undefined ? Buffer.from(digest!, 'hex').toString('latin1') : digestToken(token)
    if (UNSET_TOKEN_DIGESTS.has(tokenDigest))
      throw new SettingError(variable, `must not hold the token of an unset variable; ${position} does`)
    if (tokens.has(tokenDigest)) throw new SettingError(variable, `takes each token once; ${position} repeats one`)
    // The owner is a slice, which would keep the text with all tokens in memory.
    tokens.set(tokenDigest, {
      owner: Buffer.from(owner).toString(),
      access: readSuffix === undefined ? 'write' : 'read',
    })
  }
  if (tokens.size === 0) throw new SettingError(variable, 'takes at least one owner:token; there is none')
  return tokens
}
