import { isUtf8 } from 'node:buffer'
import { watchFile } from 'node:fs'
import { readFile, stat } from 'node:fs/promises'
import { describeSystemError, log } from '../log.ts'
import { SettingError } from './variables.ts'

const CHECK_INTERVAL_MS = 10_000

/** The value of a setting, which can change while the server runs if it comes from a file. */
export interface SettingSource<T> {
  /** The variable that the value comes from. */
  readonly variable: string
  /** Returns the latest valid value. */
  readonly current: () => T
  /** Rereads the file. A file that is missing, empty or invalid is logged and changes nothing. */
  readonly reload: () => void
}

/**
 * Reads a setting from a file, and rereads it when the file changes.
 * @param event the log event: `tokens` is logged as `tokens-read` or `tokens-kept`
 * @param parse throws a SettingError for an invalid file; gets the current value when the file is reread
 * @param describe returns the fields that describe a value in the log
 */
export async function openSettingFile<T>(
  variable: string,
  path: string,
  event: 'tokens' | 'store-url',
  parse: (text: string, current?: T) => T,
  describe: (value: T) => object,
): Promise<SettingSource<T>> {
  let value: T
  const read = async (current?: T): Promise<void> => {
    value = parse(await readText(variable, path), current)
  }
  /** The latest read. Reads run one after another, so that the last one determines the value. */
  let pending = read()

  function reload(): void {
    pending = pending.then(async () => {
      try {
        await read(value)
        log(`${event}-read`, describe(value))
      } catch (error) {
        log(`${event}-kept`, { ...describe(value), reason: (error as Error).message })
      }
    })
  }
  await pending
  watchFile(path, { interval: CHECK_INTERVAL_MS, persistent: false }, reload)
  return { variable, current: () => value, reload }
}

async function readText(variable: string, path: string): Promise<string> {
  const bytes = await readRegularFile(path).catch((error: unknown) => {
    throw new SettingError(`${variable}: the file cannot be read (${describeSystemError(error)})`)
  })
  if (bytes === undefined) throw new SettingError(`${variable} must be the path of a regular file or of a link to one`)
  if (!isUtf8(bytes)) throw new SettingError(`${variable}: the file must be UTF-8`)
  return bytes.toString().replace(/^\ufeff/, '')
}

/** Returns undefined for a directory, and for a FIFO, from which reading might never end. */
async function readRegularFile(path: string): Promise<Buffer | undefined> {
  return (await stat(path)).isFile() ? readFile(path) : undefined
}
