import { hash } from 'node:crypto'
import { runInTicks } from '../../legacy/scheduler.ts'
import type { MaybePromise } from '../../legacy/maybe-promise.ts'
import { clearTimeout, setTimeout } from '../../legacy/timers.ts'
import { log, rejectedFiles } from '../log.ts'
import { endsWithNewline, rereadSettingFile, type SettingFile } from './setting-file.ts'
import { SettingError } from './variables.ts'

/**
 * The delay before the second check of a changed file. Both checks must see the same content, because a file might be
 * half written.
 */
const RECHECK_DELAY_MS = 100
const HALF_WRITTEN_MESSAGE =
  'the file must end with a newline, as its previous version did; it might not be completely written yet'

/**
 * Watches a file, and applies its content whenever the content has changed. Checks the content rather than the
 * modification time or the inode, because mounted secrets are swapped by symbolic link.
 * @param apply applies the new value and returns the fields of its log event; throws if the value can't be applied
 * @param describeKept returns the log fields that describe the value still in effect, for a file that is missing,
 * invalid or half written
 * @returns a function that rereads and applies the file immediately, without a second check
 */
export function watchFile<T>(
  { variable, path, digest, endsWithNewline: hadFinalNewlineAtStart, parse }: SettingFile<T>,
  event: 'tokens' | 'store-url',
  apply: (value: T) => MaybePromise<object>,
  describeKept: () => object,
  checkIntervalMs: number,
): () => void {
  let hadFinalNewline = hadFinalNewlineAtStart
  /**
   * The result of the last check: an error message, or a digest of the content, because the content might be secret.
   */
  let lastSeen = digest
  let applied = lastSeen
  let latestCheck = Promise.resolve()
  let timer: NodeJS.Timeout | undefined

  function scheduleCheck(delayMs: number): void {
    timer = setTimeout(() => queueCheck(false), delayMs).unref()
  }

  /** Runs one check at a time, because reading a file on a network drive may be slow. */
  function queueCheck(isForced: boolean): void {
    latestCheck = latestCheck.then(() => check(isForced))
  }

  async function check(isForced: boolean): Promise<void> {
    // Without this, after a slow read, the next check could run right after this one and see the same half-written
    // content.
    clearTimeout(timer)
    const result = await rereadSettingFile(variable, path).catch((error: unknown) => error as SettingError)
    const fingerprint = result instanceof SettingError ? result.message : hash('sha256', result)
    const isStable = fingerprint === lastSeen
    lastSeen = fingerprint
    if (isForced || (isStable && fingerprint !== applied)) {
      applied = fingerprint
      await applyOrKeep(result)
    }
    // Erase the secrets: freed memory keeps its bytes until it's reused.
    if (!(result instanceof SettingError)) result.fill(0)
    // SIGHUP may arrive before the file is completely written, so check again soon.
    scheduleCheck(isForced || !isStable ? RECHECK_DELAY_MS : checkIntervalMs)
  }

  async function applyOrKeep(content: Buffer | SettingError): Promise<void> {
    try {
      if (content instanceof SettingError) throw content
      const value = await runInTicks(parse(content))
      if (hadFinalNewline && !endsWithNewline(content)) throw new SettingError(`${variable}: ${HALF_WRITTEN_MESSAGE}`)
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
