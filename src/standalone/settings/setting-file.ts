import { closeSync, constants, fstatSync, openSync, readSync, type Stats } from 'node:fs'
import { open } from 'node:fs/promises'
import { doNow, type Steps } from '../../later-round.ts'
import { codeOf } from '../log.ts'
import { SettingError, type Variable } from './variables.ts'

const MAX_BYTES = 16 * 2 ** 20
/** Without O_NONBLOCK, to open a FIFO would wait for whoever writes to it. */
const FLAGS = constants.O_RDONLY | constants.O_NONBLOCK

export interface SettingFile<T> {
  readonly variable: string
  readonly path: string
  readonly bytes: Buffer
  readonly value: T
  /** Reads what the file holds, in steps that throw a SettingError. */
  readonly parse: (bytes: Buffer) => Steps<T>
}

export type FileVariable<T> = Variable<SettingFile<T> | undefined>

export function settingFile<T>(name: string, takes: string, parse: SettingFile<T>['parse']): FileVariable<T> {
  function read(path: string): SettingFile<T> {
    const bytes = readSettingFile(name, path)
    return { variable: name, path, bytes, value: doNow(parse(bytes)), parse }
  }
  return { name, preset: undefined, takes, parse: read }
}

export function textFile(name: string, other: Variable<string>): FileVariable<string> {
  const takes = `a file that holds the value of ${other.name}, in place of it`
  return settingFile(name, takes, function* (bytes) {
    yield
    try {
      return other.parse(bytes.toString().replace(/\r?\n$/, ''))
    } catch (error) {
      throw new SettingError(name, `takes ${takes}, and this one does not: ${(error as SettingError).message}`)
    }
  })
}

/** Reads a file, up to the size that it has when opened: some have no end. @throws SettingError if that cannot be */
export function readSettingFile(variable: string, path: string): Buffer {
  try {
    const fd = openSync(path, FLAGS)
    try {
      const buffer = createBuffer(variable, fstatSync(fd))
      return buffer.subarray(0, readSync(fd, buffer, 0, buffer.length, 0))
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
    const handle = await open(path, FLAGS)
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
  if (stats.size > MAX_BYTES) throw new SettingError(variable, 'takes a file of at most 16 MiB, and this one has more')
  return Buffer.alloc(stats.size)
}

function toSettingError(variable: string, error: unknown): SettingError {
  if (error instanceof SettingError) return error
  return new SettingError(variable, `takes a file that can be read, and this one cannot (${codeOf(error)})`)
}
