import { isUtf8 } from 'node:buffer'
import { hash } from 'node:crypto'
import { closeSync, constants, fstatSync, openSync, readSync, type Stats } from 'node:fs'
import { open } from 'node:fs/promises'
import { runToCompletion, type CooperativeTask } from '../../scheduler.ts'
import { formatErrorCode, log } from '../log.ts'
import { SettingError, text, type Variable } from './variables.ts'

const MAX_FILE_BYTES = 16 * 2 ** 20
/** Without O_NONBLOCK, to open a FIFO would wait for whoever writes to it. */
const OPEN_FLAGS = constants.O_RDONLY | constants.O_NONBLOCK

/** A settings file as it was at startup. It keeps no bytes of the file, which may be secrets in plain text. */
export interface SettingFile<T> {
  readonly variable: string
  readonly path: string
  /** SHA-256 of the content, to notice changes. */
  readonly digest: string
  readonly endsWithNewline: boolean
  readonly value: T
  /** Reads the content of the file in steps that throw a SettingError. */
  readonly parse: (bytes: Buffer) => CooperativeTask<T>
  /** The permission bits of the file. */
  readonly mode: number
}

export type FileVariable<T> = Variable<SettingFile<T> | undefined>

/** @param parse receives the text of the file without a byte-order mark */
export function settingFile<T>(
  name: string,
  expects: string,
  parse: (text: string) => CooperativeTask<T>,
): FileVariable<T> {
  const pathVariable = text(name, undefined, expects, (path) => path !== '')
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
  return { name, defaultValue: undefined, expects, parse: parsePath }
}

export function textFile(name: string, inlineVariable: Variable<string>): FileVariable<string> {
  const expects = `a file that holds the value of ${inlineVariable.name}, in place of it`
  return settingFile(name, expects, function* (content) {
    yield
    const line = content.replace(/\r?\n$/, '')
    if (line.includes('\n')) throw new SettingError(name, 'takes a file with one line, and this one has more')
    try {
      return inlineVariable.parse(line)
    } catch (error) {
      throw new SettingError(name, `takes ${expects}, and this one does not: ${(error as SettingError).message}`)
    }
  })
}

/** Logs that other users can read or write a file with secrets. Windows has no such permission bits. */
export function warnAboutPermissions({ variable, path, mode }: SettingFile<unknown>): void {
  if (process.platform === 'win32' || (mode & 0o006) === 0) return
  const access = ['read', 'write'].filter((_, i) => (mode & (4 >> i)) !== 0).join(' and ')
  log('warning', { reason: `${variable}: other users can ${access} ${path} (mode ${mode.toString(8)})` })
}

export const endsWithNewline = (bytes: Buffer): boolean => bytes.at(-1) === 0x0a

function decodeUtf8(variable: string, bytes: Buffer): string {
  // Otherwise two owners, or two paths, could become the same one.
  if (!isUtf8(bytes)) throw new SettingError(variable, 'takes a file in UTF-8, and this one is not')
  const content = bytes.toString()
  return content.startsWith('\ufeff') ? content.slice(1) : content
}

/** Reads a file, up to the size that it has when opened: some have no end. @throws SettingError if that cannot be */
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

/** As {@link readSettingFile}, while everything else goes on. */
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
  if (!stats.isFile()) throw new SettingError(variable, 'takes a regular file, or a link to one, and this is neither')
  if (stats.size > MAX_FILE_BYTES)
    throw new SettingError(variable, 'takes a file of at most 16 MiB, and this one has more')
  return Buffer.alloc(stats.size)
}

function toSettingError(variable: string, error: unknown): SettingError {
  if (error instanceof SettingError) return error
  return new SettingError(variable, `takes a file that can be read, and this one cannot (${formatErrorCode(error)})`)
}
