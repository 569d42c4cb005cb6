import type { World } from '../simulation.ts'
import type { Change, Fate } from './scenario.ts'

/** A file, whatever it is called, and who writes to it. */
interface Inode {
  text: string
  writer?: object
}

/** A look at a file, as the file system sees it: from the time when it is opened until it is closed. */
export interface Look {
  /** What is found: the text, or what is in its place. */
  found: string
  isOver: boolean
  endedAt: number
}

const MAX_BYTES = 2 ** 24

/** A file system of a few files. */
export class Files {
  /** What is under each name: a file, or the name that it is a link to. */
  readonly #names = new Map<string, Inode | string>()
  readonly #world: World
  readonly #nextFate: () => Fate | undefined
  /** How many files are open. */
  opened = 0

  constructor(world: World, nextFate: () => Fate | undefined) {
    this.#world = world
    this.#nextFate = nextFate
  }

  change({ name, how, text, pieces }: Change): void {
    if (how === 'write' && !text.startsWith('\0')) return this.#write(name, text, pieces)
    // As Kubernetes does: the name is a link, and what that leads to changes.
    if (how === 'link') this.#names.set(name, `${name}.data`)
    this.#names.set(how === 'link' ? `${name}.data` : name, { text })
  }

  /** As a shell does. */
  #write(name: string, text: string, pieces: Change['pieces']): void {
    if (this.read(name).startsWith('\0')) this.#names.set(name, { text })
    const inode = this.#find(name)
    const writer = {}
    Object.assign(inode, { text: '', writer })
    let [at, length] = [0, 0]
    for (const [place, [ms, bytes]] of pieces.entries()) {
      const written = place === pieces.length - 1 ? text : text.slice(0, (length += bytes))
      this.#world.time.after((at += ms), () => {
        if (inode.writer === writer) inode.text = written
      })
    }
  }

  #find(name: string): Inode {
    const found = this.#names.get(name)!
    return typeof found === 'string' ? this.#find(found) : found
  }

  read(name: string): string {
    return this.#find(name).text
  }

  /** Takes the place of Node's. */
  async open(path: string, look: Look): Promise<object> {
    const inode = await this.#befall('open', look, () => {
      const found = this.#find(path)
      if (found.text.startsWith('\0E')) throw errorOf(found.text, look)
      return found
    }).catch((error: unknown) => {
      look.isOver = true
      throw error
    })
    this.opened++
    return {
      stat: () =>
        this.#befall('stat', look, () => {
          look.found = inode.text
          const size = inode.text === '\0huge' ? MAX_BYTES + 1 : inode.text.length
          return { isFile: () => inode.text !== '\0folder', size }
        }),
      read: (buffer: Buffer) =>
        this.#befall('read', look, () => {
          look.found = inode.text.slice(0, buffer.length)
          return { bytesRead: buffer.write(look.found, 'latin1') }
        }),
      close: () => {
        this.opened--
        this.#world.expect(!look.isOver, 'no file is closed twice')
        return this.#befall('close', look, () => undefined).finally(() => (look.isOver = true))
      },
    }
  }

  async #befall<T>(operation: string, look: Look, act: () => T): Promise<T> {
    const fate = this.#nextFate()
    const { time } = this.#world
    if (fate !== undefined) {
      this.#world.tell(operation, fate)
      await new Promise<void>((resolve) => time.after(fate.ms, resolve))
    }
    look.endedAt = time.now
    if (fate?.code !== undefined) throw errorOf(`\0${fate.code}`, look)
    return act()
  }
}

function errorOf(problem: string, look: Look): Error {
  look.found = problem
  return Object.assign(new Error(), { code: problem.slice(1) })
}
