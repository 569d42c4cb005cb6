import { digestToken, type Caller } from '../../legacy/http/caller.ts'
import { runInTicks, type CooperativeTask } from '../../legacy/scheduler.ts'
import { isSameStore } from '../../stores/open-store.ts'
import { log } from '../log.ts'
import { watchFile } from './watch-file.ts'
import type { SettingFile } from './setting-file.ts'
import type { Tokens } from './tokens.ts'

const CHECK_INTERVAL_MS = 10_000
const NO_FILE_REASON = 'PLANT_STORE_TOKENS_FILE is not set, so there is no file to reread'

/**
 * Creates the token lookup. If the tokens come from a file, they're reloaded when the file changes and on `reload()`.
 */
export function createTokenSource(
  tokens: Tokens,
  file: SettingFile<Tokens> | undefined,
): { readonly authenticate: (token: string) => Caller | undefined; readonly reload: () => void } {
  let currentTokens = tokens
  const describeTokens = (): { readonly tokens: number } => ({ tokens: currentTokens.size })
  async function applyTokens(newTokens: Tokens): Promise<object> {
    const changes = await runInTicks(compareTokens(currentTokens, newTokens))
    currentTokens = newTokens
    return { tokens: currentTokens.size, ...changes }
  }
  const reload = file && watchFile(file, 'tokens', applyTokens, describeTokens, CHECK_INTERVAL_MS)
  return {
    authenticate: (token) => currentTokens.get(digestToken(token)),
    reload: reload ?? (() => log('tokens-kept', { ...describeTokens(), reason: NO_FILE_REASON })),
  }
}

function* compareTokens(before: Tokens, after: Tokens): CooperativeTask<Readonly<Record<string, number>>> {
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

/**
 * Creates the source of the store URL. If the URL comes from a file, a new password in that file takes effect without a
 * restart.
 */
export function createStoreUrlSource(
  url: string,
  file: SettingFile<string> | undefined,
): { readonly getCurrent: () => string; readonly reload: () => void } {
  let currentUrl = file?.value ?? url
  function applyUrl(newUrl: string): object {
    if (!isSameStore(currentUrl, newUrl)) {
      throw new Error('PLANT_STORE_URL_FILE: more than the password has changed; restart to use the new URL')
    }
    const changed = newUrl !== currentUrl
    currentUrl = newUrl
    return { changed }
  }
  const reload = file && watchFile(file, 'store-url', applyUrl, () => ({}), CHECK_INTERVAL_MS)
  return { getCurrent: () => currentUrl, reload: reload ?? (() => undefined) }
}
