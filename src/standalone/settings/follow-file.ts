import { hash } from 'node:crypto'
import { doInRounds } from '../../later-round.ts'
import type { MaybePromise } from '../../maybe-promise.ts'
import { clearTimeout, setTimeout } from '../../timers.ts'
import { log, rejectedFiles } from '../log.ts'
import { endsWithNewline, rereadSettingFile, type SettingFile } from './setting-file.ts'
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
  { variable, path, digest, endsWithNewline: endedAtStart, parse }: SettingFile<T>,
  event: 'tokens' | 'store-url',
  take: (found: T) => MaybePromise<object>,
  keep: () => object,
  lookMs: number,
): () => void {
  let endedLine = endedAtStart
  /** What the last look found: a digest of the file, which may hold secrets in plain text, or why it cannot be read. */
  let seen = digest
  let told = seen
  let latest = Promise.resolve()
  let timer: NodeJS.Timeout | undefined

  function lookIn(ms: number): void {
    timer = setTimeout(() => queue(false), ms).unref()
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
    // The memory of a freed buffer keeps its bytes until it is used again.
    if (!(found instanceof SettingError)) found.fill(0)
    // The signal may have come before the file was whole.
    lookIn(isTold || !isSettled ? SETTLE_MS : lookMs)
  }

  async function takeOrKeep(found: Buffer | SettingError): Promise<void> {
    try {
      if (found instanceof SettingError) throw found
      const value = await doInRounds(parse(found))
      if (endedLine && !endsWithNewline(found)) throw new SettingError(variable, HALF_WRITTEN)
      const fields = await take(value)
      endedLine = endsWithNewline(found)
      rejectedFiles.set(variable, false)
      log(`${event}-read`, fields)
    } catch (error) {
      rejectedFiles.set(variable, true)
      log(`${event}-kept`, { ...keep(), reason: (error as Error).message })
    }
  }

  rejectedFiles.set(variable, false)
  lookIn(lookMs)
  return () => queue(true)
}
