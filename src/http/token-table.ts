import { hash } from 'node:crypto'
import { quote } from '../option-checks.ts'
import { B64TOKEN } from './bearer.ts'
import { toCaller, type Caller, type TokenHolder } from './caller.ts'

const TOKEN = new RegExp(`^${B64TOKEN}$`)

/** By the digests of the tokens: neither a heap dump nor the time of a look-up betrays one. @throws TypeError */
export function createTokenTable(
  tokens: Iterable<readonly [string, TokenHolder]>,
): (token: string) => Caller | undefined {
  const callers = new Map<string, Caller>()
  for (const [token, holder] of tokens) {
    const caller = toCaller(holder, 'options.tokens: a token must have')
    const whose = `options.tokens: the token of ${quote(caller.owner)} must`
    if (!TOKEN.test(token)) throw new TypeError(`${whose} be letters, digits and -._~+/, then any "="`)
    if (UNSET_TOKENS.includes(token)) throw new TypeError(`${whose} not be "${token}"`)
    callers.set(digestToken(token), caller)
  }
  return (token) => callers.get(digestToken(token))
}

/** An unset variable becomes one of these texts in a template. */
export const UNSET_TOKENS: readonly string[] = ['undefined', 'null']

export function digestToken(token: string): string {
  return hash('sha256', token, 'binary')
}
