import { isSameStore } from '../../stores/open-store.ts'
import { followFile } from './follow-file.ts'
import type { SettingFile } from './setting-file.ts'

/** Follows the URL of the store, which may get another password while the program runs, if a file holds it. */
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
  const reread = file && followFile(file, 'store-url', { take, keep: () => ({}) })
  return { current: () => current, reread: reread ?? (() => undefined) }
}
