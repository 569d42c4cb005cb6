import { hash } from 'node:crypto'
import { doInRounds } from '../../later-round.ts'
import type { MaybePromise } from '../../maybe-promise.ts'
import { clearTimeout, setTimeout } from '../../timers.ts'
import { log } from '../log.ts'
import { rereadSettingFile, type SettingFile } from './setting-file.ts'
import { SettingError } from './variables.ts'

/** How soon a second look follows one that found a change. Both must find the same: a file may be half written. */
const SETTLE_MS = 100
const HALF_WRITTEN = 'takes a file that ends with a newline, as it did before: it may be half written'

/**
 * Follows the content of a file. Its time or inode would not do: a mounted secret is swapped by symbolic link.
 * @param keep what still holds if the file is missing, wrong or half written; for what is wrong, `take` throws
 * @returns a function that rereads the file now, without the second look
 */
export function followFile<T>(
  { variable, path, bytes, parse }: SettingFile<T>,
  event: 'tokens' | 'store-url',
  take: (found: T) => MaybePromise<object>,
  keep: () => object,
  lookMs?: number,
): () => void {
  let endedLine = endsLine(bytes)
  /** What the last look found: a digest of the file, which may hold secrets in plain text, or why it cannot be read. */
  let seen = hash('sha256', bytes)
  let told = seen
  let latest = Promise.resolve()
  let timer: NodeJS.Timeout | undefined

  function lookIn(ms: number | undefined): void {
    if (ms !== undefined) timer = setTimeout(() => queue(false), ms).unref()
  }

  /** One look at a time: a file on a network may take long to read. */
  function queue(isTold: boolean): void {
    latest = latest.then(() => look(isTold))
  }

  async function look(isTold: boolean): Promise<void> {
    // Otherwise the next look could follow this one at once, and find the same half.
    clearTimeout(timer)
    const found = await rereadSettingFile(variable, path).catch((error: unknown) => error as SettingError)
    const print = found instanceof SettingError ? found.message : hash('sha256', found)
    const isSettled = print === seen
    seen = print
    if (isTold || (isSettled && print !== told)) {
      told = print
      await takeOrKeep(found)
    }
    // The signal may have come before the file was whole.
    lookIn(isTold || !isSettled ? SETTLE_MS : lookMs)
  }

  async function takeOrKeep(found: Buffer | SettingError): Promise<void> {
    try {
      if (found instanceof SettingError) throw found
      const value = await doInRounds(parse(found))
      if (endedLine && !endsLine(found)) throw new SettingError(variable, HALF_WRITTEN)
      const fields = await take(value)
      endedLine = endsLine(found)
      log(`${event}-read`, fields)
    } catch (error) {
      log(`${event}-kept`, { ...keep(), reason: (error as Error).message })
    }
  }

  lookIn(lookMs)
  return () => queue(true)
}

const endsLine = (bytes: Buffer): boolean => bytes.at(-1) === 0x0a
