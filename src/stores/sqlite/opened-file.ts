import { statSync, type BigIntStats } from 'node:fs'
import { StoreUnavailableError } from '../../plants/store.ts'
import { ask, pathOf, type SqliteHandle } from './handle.ts'

/** A log of this size is worth a warning, and so is each doubling. */
const LARGE_LOG_BYTES = 64 * 2 ** 20

const MOVED = 'another file, or none, has its name or that of its log (-wal), so nothing is read or written'
const STUCK = 'it cannot be emptied while another process reads, and emptying it will stop the service for a moment'
const OVERWRITTEN = 'another file was copied over it; stop, restore the file and its log, and start again'

/**
 * The file that was opened, with its log. If it is moved, removed or replaced, SQLite goes on with it, and what it
 * acknowledges is lost. (To open the file and look into it would not do: closing it drops the locks that SQLite has on
 * it.)
 */
export class OpenedFile {
  readonly #name: string
  readonly #logName: string
  readonly #handle: SqliteHandle
  readonly #warn: (message: string) => void
  readonly #file: BigIntStats | undefined
  readonly #log: BigIntStats | undefined
  #size: bigint | undefined
  #version: unknown
  #problem: string | undefined
  #warnAt = LARGE_LOG_BYTES
  /** The size of the log before the last commit or ping. */
  logBytes = 0
  #nextReadLookAt = 0

  /** @param name the path that the operator knows; SQLite may know another one, where its log is */
  constructor(name: string, handle: SqliteHandle, warn: (message: string) => void) {
    this.#name = name
    this.#logName = `${pathOf(handle)}-wal`
    this.#handle = handle
    this.#warn = warn
    // To ask SQLite for it makes the log, if there is none.
    this.#version = this.#schemaVersion()
    this.#file = find(this.#name)
    this.#log = find(this.#logName)
    this.#size = this.#file?.size
  }

  /** @throws StoreUnavailableError unless the file and its log are those that were opened */
  check(): void {
    const problem = this.#problem === OVERWRITTEN ? OVERWRITTEN : this.#findProblem()
    if (problem !== this.#problem) {
      this.#problem = problem
      this.#warn(`SQLite database ${this.#name}: ${problem ?? 'the file and its log are back'}`)
    }
    if (problem !== undefined) throw new StoreUnavailableError(`SQLite database ${this.#name}: ${problem}`)
  }

  /** The same for a read, which costs little more than a look at the file: so this looks ten times a second. */
  checkForRead(): void {
    const now = performance.now()
    if (this.#problem === undefined && now < this.#nextReadLookAt) return
    this.#nextReadLookAt = now + 100
    this.check()
  }

  #findProblem(): string | undefined {
    const file = find(this.#name)
    const log = find(this.#logName)
    if (!isSame(file, this.#file) || !isSame(log, this.#log)) return MOVED
    if (this.#isCut(file.size)) return OVERWRITTEN
    this.#watchLog(Number(log.size))
    return undefined
  }

  /** Whether the file has lost pages, but not by VACUUM. */
  #isCut(size: bigint): boolean {
    if (size < this.#size!) {
      const version = this.#schemaVersion()
      if (version === this.#version) return true
      this.#version = version
    }
    this.#size = size
    return false
  }

  /** VACUUM makes the file shorter, and changes this. With auto_vacuum the file may become shorter at any time. */
  #schemaVersion(): unknown {
    const found = ask(this.#handle, 'schema_version')
    return Number(ask(this.#handle, 'auto_vacuum')) === 0 ? found : {}
  }

  #watchLog(bytes: number): void {
    this.logBytes = bytes
    if (bytes < LARGE_LOG_BYTES) {
      this.#warnAt = LARGE_LOG_BYTES
    } else if (bytes >= this.#warnAt) {
      while (this.#warnAt <= bytes) this.#warnAt *= 2
      const size = `${Math.floor(bytes / 2 ** 20)} MiB`
      this.#warn(`SQLite database ${this.#name}: its log (-wal) has ${size}; ${STUCK}`)
    }
  }
}

function isSame(found: BigIntStats | undefined, opened: BigIntStats | undefined): found is BigIntStats {
  return found !== undefined && found.ino === opened?.ino && found.dev === opened.dev
}

function find(path: string): BigIntStats | undefined {
  try {
    return statSync(path, { bigint: true })
  } catch {
    return undefined
  }
}
