import { digestToken, type Caller } from '../../http/caller.ts'
import { doInRounds, type Steps } from '../../later-round.ts'
import { isSameStore } from '../../stores/open-store.ts'
import { log } from '../log.ts'
import { followFile } from './follow-file.ts'
import type { SettingFile } from './setting-file.ts'
import type { Tokens } from './tokens.ts'

const LOOK_MS = 10_000

/** Makes the source of the tokens. If they come from a file, it is read again whenever it has changed, too. */
export function createTokenSource(
  tokens: Tokens,
  file: SettingFile<Tokens> | undefined,
): { readonly authenticate: (token: string) => Caller | undefined; readonly reread: () => void } {
  let held = tokens
  const keep = (): { readonly tokens: number } => ({ tokens: held.size })
  async function take(found: Tokens): Promise<object> {
    const change = await doInRounds(compare(held, found))
    held = found
    return { tokens: held.size, ...change }
  }
  const lookAtOnce = file && followFile(file, 'tokens', take, keep, LOOK_MS)
  return {
    authenticate: (token) => held.get(digestToken(token)),
    reread: lookAtOnce ?? (() => log('tokens-kept', { ...keep(), reason: 'They come from no file.' })),
  }
}

function* compare(before: Tokens, after: Tokens): Steps<Readonly<Record<string, number>>> {
  let added = 0
  let changed = 0
  for (const [token, { owner, access }] of after) {
    yield
    const caller = before.get(token)
    if (caller === undefined) added++
    else if (caller.owner !== owner || caller.access !== access) changed++
  }
  return { added, removed: before.size + added - after.size, changed }
}

/** Makes the source of the store's URL. If it comes from a file, a new password in it takes effect without a restart. */
export function followStoreUrl(
  url: string,
  file: SettingFile<string> | undefined,
): { readonly current: () => string; readonly reread: () => void } {
  let current = file?.value ?? url
  function take(found: string): object {
    if (!isSameStore(current, found)) throw new Error('More than the password has changed, which takes a restart.')
    const changed = found !== current
    current = found
    return { changed }
  }
  const reread = file && followFile(file, 'store-url', take, () => ({}), LOOK_MS)
  return { current: () => current, reread: reread ?? (() => undefined) }
}
