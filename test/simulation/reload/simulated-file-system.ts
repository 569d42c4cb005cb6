import type { Simulation } from '../simulation.ts'
import type { Change, Fault } from './scenario.ts'

/** A file, independent of its names, with its current writer. */
interface Inode {
  text: string
  writer?: object
}

/** A read of a file, from opening to closing it. */
export interface FileRead {
  /** The text that was read, or the error. */
  content: string
  isClosed: boolean
  endedAt: number
}

const MAX_BYTES = 2 ** 24

/** A file system with a few files. */
export class SimulatedFileSystem {
  /** Maps a name to a file, or to the name that a symbolic link points to. */
  readonly #names = new Map<string, Inode | string>()
  readonly #world: Simulation
  readonly #nextFault: () => Fault | undefined
  /** The number of open files. */
  openCount = 0

  constructor(world: Simulation, nextFault: () => Fault | undefined) {
    this.#world = world
    this.#nextFault = nextFault
  }

  change({ name, how, text, chunks }: Change): void {
    if (how === 'write' && !text.startsWith('\0')) return this.#writeInChunks(name, text, chunks)
    // Like Kubernetes, which replaces the target of a symbolic link.
    if (how === 'link') this.#names.set(name, `${name}.data`)
    this.#names.set(how === 'link' ? `${name}.data` : name, { text })
  }

  /** Writes like a shell redirection: truncates the file first. */
  #writeInChunks(name: string, text: string, chunks: Change['chunks']): void {
    if (this.readText(name).startsWith('\0')) this.#names.set(name, { text })
    const inode = this.#resolve(name)
    const writer = {}
    Object.assign(inode, { text: '', writer })
    let [delayMs, length] = [0, 0]
    for (const [index, [ms, bytes]] of chunks.entries()) {
      const written = index === chunks.length - 1 ? text : text.slice(0, (length += bytes))
      this.#world.time.schedule((delayMs += ms), () => {
        if (inode.writer === writer) inode.text = written
      })
    }
  }

  #resolve(name: string): Inode {
    const entry = this.#names.get(name)!
    return typeof entry === 'string' ? this.#resolve(entry) : entry
  }

  readText(name: string): string {
    return this.#resolve(name).text
  }

  /** Replaces `fsPromises.open()`. */
  async open(path: string, fileRead: FileRead): Promise<object> {
    const inode = await this.#performWithFault('open', fileRead, () => {
      const resolved = this.#resolve(path)
      if (resolved.text.startsWith('\0E')) throw createError(resolved.text, fileRead)
      return resolved
    }).catch((error: unknown) => {
      fileRead.isClosed = true
      throw error
    })
    this.openCount++
    return {
      stat: () =>
        this.#performWithFault('stat', fileRead, () => {
          fileRead.content = inode.text
          const size = inode.text === '\0huge' ? MAX_BYTES + 1 : inode.text.length
          return { isFile: () => inode.text !== '\0folder', size }
        }),
      read: (buffer: Buffer) =>
        this.#performWithFault('read', fileRead, () => {
          fileRead.content = inode.text.slice(0, buffer.length)
          return { bytesRead: buffer.write(fileRead.content, 'latin1') }
        }),
      close: () => {
        this.openCount--
        this.#world.check(!fileRead.isClosed, 'a file is closed once')
        return this.#performWithFault('close', fileRead, () => undefined).finally(() => (fileRead.isClosed = true))
      },
    }
  }

  async #performWithFault<T>(operation: string, fileRead: FileRead, action: () => T): Promise<T> {
    const fault = this.#nextFault()
    const { time } = this.#world
    if (fault !== undefined) {
      this.#world.log(operation, fault)
      await new Promise<void>((resolve) => time.schedule(fault.ms, resolve))
    }
    fileRead.endedAt = time.now
    if (fault?.code !== undefined) throw createError(`\0${fault.code}`, fileRead)
    return action()
  }
}

function createError(content: string, fileRead: FileRead): Error {
  fileRead.content = content
  return Object.assign(new Error(), { code: content.slice(1) })
}
