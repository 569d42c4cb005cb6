import { hash } from 'node:crypto'
import { runInTicks } from '../../scheduler.ts'
import type { MaybePromise } from '../../maybe-promise.ts'
import { clearTimeout, setTimeout } from '../../timers.ts'
import { log, rejectedFiles } from '../log.ts'
import { endsWithNewline, rereadSettingFile, type SettingFile } from './setting-file.ts'
import { SettingError } from './variables.ts'

/** How soon a second look follows one that found a change. Both must find the same: a file may be half written. */
const RECHECK_DELAY_MS = 100
const HALF_WRITTEN_MESSAGE = 'takes a file that ends with a newline, as it did before: it may be half written'

/**
 * Follows the content of a file. Its time or inode would not do: a mounted secret is swapped by symbolic link.
 * @param describeKept what still holds if the file is missing, wrong or half written; for what is wrong, `take` throws
 * @returns a function that rereads the file now, without the second look
 */
export function watchFile<T>(
  { variable, path, digest, endsWithNewline: hadFinalNewlineAtStart, parse }: SettingFile<T>,
  event: 'tokens' | 'store-url',
  apply: (value: T) => MaybePromise<object>,
  describeKept: () => object,
  checkIntervalMs: number,
): () => void {
  let hadFinalNewline = hadFinalNewlineAtStart
  /** What the last look found: a digest of the file, which may hold secrets in plain text, or why it cannot be read. */
  let lastSeen = digest
  let applied = lastSeen
  let latestCheck = Promise.resolve()
  let timer: NodeJS.Timeout | undefined

  function scheduleCheck(delayMs: number): void {
    timer = setTimeout(() => queueCheck(false), delayMs).unref()
  }

  /** One look at a time: a file on a network may take long to read. */
  function queueCheck(isForced: boolean): void {
    latestCheck = latestCheck.then(() => check(isForced))
  }

  async function check(isForced: boolean): Promise<void> {
    // Otherwise the next look could follow this one at once, and find the same half.
    clearTimeout(timer)
    const result = await rereadSettingFile(variable, path).catch((error: unknown) => error as SettingError)
    const fingerprint = result instanceof SettingError ? result.message : hash('sha256', result)
    const isStable = fingerprint === lastSeen
    lastSeen = fingerprint
    if (isForced || (isStable && fingerprint !== applied)) {
      applied = fingerprint
      await applyOrKeep(result)
    }
    // The memory of a freed buffer keeps its bytes until it is used again.
    if (!(result instanceof SettingError)) result.fill(0)
    // The signal may have come before the file was whole.
    scheduleCheck(isForced || !isStable ? RECHECK_DELAY_MS : checkIntervalMs)
  }

  async function applyOrKeep(content: Buffer | SettingError): Promise<void> {
    try {
      if (content instanceof SettingError) throw content
      const value = await runInTicks(parse(content))
      if (hadFinalNewline && !endsWithNewline(content)) throw new SettingError(variable, HALF_WRITTEN_MESSAGE)
      const fields = await apply(value)
      hadFinalNewline = endsWithNewline(content)
      rejectedFiles.set(variable, false)
      log(`${event}-read`, fields)
    } catch (error) {
      rejectedFiles.set(variable, true)
      log(`${event}-kept`, { ...describeKept(), reason: (error as Error).message })
    }
  }

  rejectedFiles.set(variable, false)
  scheduleCheck(checkIntervalMs)
  return () => queueCheck(true)
}
