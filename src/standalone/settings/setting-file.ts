import { isUtf8 } from 'node:buffer'
import { hash } from 'node:crypto'
import { closeSync, constants, fstatSync, openSync, readSync, type Stats } from 'node:fs'
import { open } from 'node:fs/promises'
import { runToCompletion, type CooperativeTask } from '../../legacy/scheduler.ts'
import { formatErrorCode, log } from '../log.ts'
import { SettingError, text, type Variable } from './variables.ts'

const MAX_FILE_BYTES = 16 * 2 ** 20
/** Without O_NONBLOCK, opening a FIFO would block until another process opens it for writing. */
const OPEN_FLAGS = constants.O_RDONLY | constants.O_NONBLOCK

/** A settings file as it was read at startup. The bytes of the file aren't kept, because they might be secret. */
export interface SettingFile<T> {
  readonly variable: string
  readonly path: string
  /** SHA-256 of the content, to detect changes. */
  readonly digest: string
  readonly endsWithNewline: boolean
  readonly value: T
  /** Parses the content of the file in steps. Throws a SettingError if the content is invalid. */
  readonly parse: (bytes: Buffer) => CooperativeTask<T>
  /** The permission bits of the file. */
  readonly mode: number
}

export type FileVariable<T> = Variable<SettingFile<T> | undefined>

/** @param parse receives the content of the file, stripped of any byte-order mark */
export function settingFile<T>(
  name: string,
  description: string,
  parse: (text: string) => CooperativeTask<T>,
): FileVariable<T> {
  const pathVariable = text(name, undefined, description, 'the path of a file', (path) => path !== '')
  const parseBytes = (bytes: Buffer): CooperativeTask<T> => parse(decodeUtf8(name, bytes))

  function parsePath(value: string): SettingFile<T> {
    const file = { variable: name, path: pathVariable.parse(value)!, parse: parseBytes }
    const { bytes, mode } = readSettingFile(name, file.path)
    try {
      const digest = hash('sha256', bytes)
      return {
        ...file,
        digest,
        endsWithNewline: endsWithNewline(bytes),
        mode,
        value: runToCompletion(parseBytes(bytes)),
      }
    } finally {
      bytes.fill(0)
    }
  }
  return { ...pathVariable, parse: parsePath }
}

export function textFile(name: string, inlineVariable: Variable<string>): FileVariable<string> {
  const description = `${inlineVariable.name} in a file; the file is reread when it changes`
  return settingFile(name, description, function* (content) {
    yield
    const line = content.replace(/\r?\n$/, '')
    if (line.includes('\n')) throw new SettingError(`${name}: the file must contain only one line`)
    try {
      return inlineVariable.parse(line)
    } catch (error) {
      throw new SettingError(`${name}: the content of the file is invalid: ${(error as SettingError).message}`)
    }
  })
}

/**
 * Logs a warning if other users can read or write a settings file, which might contain secrets. Windows doesn't have
 * these permission bits.
 */
export function warnAboutPermissions({ variable, path, mode }: SettingFile<unknown>): void {
  if (process.platform === 'win32' || (mode & 0o006) === 0) return
  const access = ['read', 'write'].filter((_, i) => (mode & (4 >> i)) !== 0).join(' and ')
  log('warning', { reason: `${variable}: other users can ${access} ${path} (mode ${mode.toString(8)})` })
}

export const endsWithNewline = (bytes: Buffer): boolean => bytes.at(-1) === 0x0a

function decodeUtf8(variable: string, bytes: Buffer): string {
  // Decoding replaces invalid bytes with U+FFFD, which could make two different owners or paths identical.
  if (!isUtf8(bytes)) throw new SettingError(`${variable}: the file must be UTF-8`)
  const content = bytes.toString()
  return content.startsWith('\ufeff') ? content.slice(1) : content
}

/**
 * Reads a file, but only up to the size that it has when it's opened, because some files never end.
 * @throws SettingError if the file can't be read, isn't a regular file, or is too large
 */
export function readSettingFile(variable: string, path: string): { readonly bytes: Buffer; readonly mode: number } {
  try {
    const fd = openSync(path, OPEN_FLAGS)
    try {
      const stats = fstatSync(fd)
      const buffer = createBuffer(variable, stats)
      return { bytes: buffer.subarray(0, readSync(fd, buffer, 0, buffer.length, 0)), mode: stats.mode & 0o777 }
    } finally {
      closeSync(fd)
    }
  } catch (error) {
    throw toSettingError(variable, error)
  }
}

/** Does the same as {@link readSettingFile}, without blocking the event loop. */
export async function rereadSettingFile(variable: string, path: string): Promise<Buffer> {
  try {
    const handle = await open(path, OPEN_FLAGS)
    try {
      const buffer = createBuffer(variable, await handle.stat())
      return buffer.subarray(0, (await handle.read(buffer, 0, buffer.length, 0)).bytesRead)
    } finally {
      await handle.close()
    }
  } catch (error) {
    throw toSettingError(variable, error)
  }
}

function createBuffer(variable: string, stats: Stats): Buffer {
  if (!stats.isFile()) throw new SettingError(`${variable} must be the path of a regular file or of a link to one`)
  if (stats.size > MAX_FILE_BYTES) throw new SettingError(`${variable}: the file must not be larger than 16 MiB`)
  return Buffer.alloc(stats.size)
}

function toSettingError(variable: string, error: unknown): SettingError {
  if (error instanceof SettingError) return error
  return new SettingError(`${variable}: the file cannot be read (${formatErrorCode(error)})`)
}
