import { isSameStore } from '../../stores/open-store.ts'
import { log } from '../log.ts'

/**
 * Follows the URL of the store, which may get another password while the program runs. If what is reread is wrong, or
 * names another store, the last good one holds.
 * @param readFile reads the file that holds it; undefined if none does
 */
export function followStoreUrl(
  url: string,
  readFile: () => string | undefined,
): { readonly current: () => string; readonly reread: () => void } {
  let current = url
  return {
    current: () => current,
    reread() {
      try {
        const found = readFile()
        if (found === undefined) return
        if (!isSameStore(current, found)) throw new Error('More than the password has changed, which takes a restart.')
        log('store-url-read', { changed: found !== current })
        current = found
      } catch (error) {
        log('store-url-kept', { reason: (error as Error).message })
      }
    },
  }
}
