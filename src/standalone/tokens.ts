import { readFileSync } from 'node:fs'
import { SettingError, type Variable } from './variables.ts'

/** The owner of each token. */
export type Tokens = ReadonlyMap<string, string>

/** The token is RFC 6750's `b64token`. It has no colon, so the last colon divides an entry; an owner may have some. */
const ENTRY = /^(?<owner>[^\0\n]+):(?<token>[A-Za-z0-9\-._~+/]+=*)$/

/** A variable that takes tokens, separated by commas. */
export function tokenList(name: string): Variable<Tokens | undefined> {
  const takes = 'owner:token, separated by commas; by default a random token for the owner demo'
  const parse = (value: string): Tokens => parseTokens(name, 'entry', value.split(','))
  return { name, preset: undefined, shown: undefined, takes, parse }
}

/** A variable that takes the path of a file with a token in each line. */
export function tokenFile(name: string, insteadOf: string): Variable<Tokens | undefined> {
  const takes = `a file of owner:token lines, in place of ${insteadOf}`
  function parse(path: string): Tokens {
    let content: string
    try {
      content = readFileSync(path, 'utf8')
    } catch (cause) {
      const { code } = cause as NodeJS.ErrnoException
      throw new SettingError(name, `takes ${takes}; the file cannot be read (${code})`, { cause })
    }
    return parseTokens(name, 'line', content.split('\n'))
  }
  return { name, preset: undefined, shown: undefined, takes, parse }
}

/** An error gives the number of the entry that is wrong and does not quote it: it may hold a token. */
function parseTokens(variable: string, unit: 'entry' | 'line', entries: readonly string[]): Tokens {
  const owners = new Map<string, string>()
  for (const [index, entry] of entries.entries()) {
    if (entry.trim() === '') continue
    const place = `${unit} ${index + 1}`
    const { owner, token } = ENTRY.exec(entry.trim())?.groups ?? {}
    if (owner === undefined || token === undefined) {
      throw new SettingError(
        variable,
        `takes owner:token, with a token of letters, digits and -._~+/, then any "="; ${place} is not of that form`,
      )
    }
    if (owners.has(token)) throw new SettingError(variable, `takes each token once; ${place} repeats one`)
    owners.set(token, owner)
  }
  if (owners.size === 0) throw new SettingError(variable, 'takes at least one owner:token; there is none')
  return owners
}
