import { isUtf8 } from 'node:buffer'
import { B64TOKEN } from '../../http/bearer.ts'
import { digestToken, UNSET_TOKENS, type Caller } from '../../http/caller.ts'
import { doNow, type Steps } from '../../later-round.ts'
import { settingFile, type FileVariable } from './setting-file.ts'
import { SettingError, type Variable } from './variables.ts'

export type Tokens = ReadonlyMap<string, Caller>

/** A token has no colon, so the last one divides. An owner has no character that may stand between two entries. */
const ENTRY = new RegExp(
  String.raw`^(?<owner>(?!#)[^\s,"'\x60\x00-\x1f\x7f-\x9f]+):(?:\$sha256\$(?<digest>[0-9A-Fa-f]{64})|(?<token>${B64TOKEN}))(?<read>[ \t]+read)?$`,
)

const FORM =
  'owner:token or owner:$sha256$ with 64 hexadecimal digits, and " read" behind it if the token may only read. ' +
  'An owner has no white space, comma or quote and does not begin with "#"; ' +
  'a token has letters, digits and -._~+/, then any "="'

/** Tokens that an unset variable turns into. No program means to let in a client that sends one. */
const UNSET: ReadonlySet<string> = new Set(['', ...UNSET_TOKENS].map(digestToken))

export function tokenList(name: string): Variable<Tokens | undefined> {
  const takes =
    'owner:token, "owner:token read" or owner:$sha256$<digest>, separated by commas; ' +
    'by default a random token for the owner demo'
  const parse = (value: string): Tokens => doNow(parseTokens(name, 'entry', value))
  return { name, preset: undefined, takes, parse }
}

export function tokenFile(name: string, insteadOf: string): FileVariable<Tokens> {
  const takes = `a file with such an entry in each line, in place of ${insteadOf}; read again when it changes`
  return settingFile(name, takes, (bytes) => {
    // Otherwise two owners could become the same one.
    if (!isUtf8(bytes)) throw new SettingError(name, 'takes a file in UTF-8, and this one is not')
    return parseTokens(name, 'line', bytes.toString())
  })
}

/** Its errors give the number of a wrong entry, and do not quote it: it may hold a token. */
function* parseTokens(variable: string, unit: 'entry' | 'line', text: string): Steps<Tokens> {
  const tokens = new Map<string, Caller>()
  let number = 1
  let end = 0
  for (const { 0: piece, index } of text.matchAll(unit === 'entry' ? /[^,]+/g : /[^\n]+/g)) {
    yield
    // Between two pieces stands nothing but what divides entries.
    number += index - end
    end = index + piece.length
    const entry = piece.trim()
    if (entry === '' || (unit === 'line' && entry.startsWith('#'))) continue
    const place = `${unit} ${number}`
    const parts = ENTRY.exec(entry)?.groups
    if (parts === undefined) throw new SettingError(variable, `takes ${FORM}; ${place} is not of that form`)
    const { owner, digest, token, read } = parts as { owner: string } & Partial<Record<string, string>>
    const key = token === undefined ? Buffer.from(digest!, 'hex').toString('latin1') : digestToken(token)
    if (UNSET.has(key)) throw new SettingError(variable, `must not hold the token of an unset variable; ${place} does`)
    if (tokens.has(key)) throw new SettingError(variable, `takes each token once; ${place} repeats one`)
    tokens.set(key, { owner, access: read === undefined ? 'write' : 'read' })
  }
  if (tokens.size === 0) throw new SettingError(variable, 'takes at least one owner:token; there is none')
  return tokens
}
