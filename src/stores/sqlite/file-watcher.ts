import { statSync, type BigIntStats } from 'node:fs'
import { StoreUnavailableError } from '../../plants/store.ts'
import { performance } from '../../timers.ts'
import { readPragma, databasePathOf, type SqliteHandle } from './handle.ts'

/** A log of this size is worth a warning, and so is each doubling. */
const LARGE_WAL_BYTES = 64 * 2 ** 20

const FILE_MISSING_MESSAGE =
  'another file, or none, has its name or that of its log (-wal) or shared memory (-shm), so nothing is read or written'
const FILE_RESTORED_MESSAGE = 'the file, its log and its shared memory are back'
const LARGE_WAL_MESSAGE =
  'so do not truncate or remove it. SQLite empties it once no other process reads; that stops the service for a moment'

/** The file, its log and its shared memory. If one of them is moved, SQLite goes on, and what it acknowledges is lost. */
export class FileWatcher {
  readonly #displayPath: string
  readonly #paths: readonly string[]
  readonly #warn: (message: string) => void
  readonly #openedStats: readonly (BigIntStats | undefined)[]
  #isMissing = false
  #nextWarningBytes = LARGE_WAL_BYTES
  walBytes = 0
  #nextReadCheckAt = 0

  /** @param displayPath the path that the operator knows; SQLite may know another one, where its log is */
  constructor(displayPath: string, handle: SqliteHandle, warn: (message: string) => void) {
    this.#displayPath = displayPath
    this.#warn = warn
    // To ask SQLite for it makes the log and the shared memory, if there are none.
    readPragma(handle, 'schema_version')
    const path = databasePathOf(handle)
    this.#paths = [displayPath, `${path}-wal`, `${path}-shm`]
    this.#openedStats = this.#paths.map(tryStat)
  }

  /** @throws StoreUnavailableError unless the file, its log and its shared memory are those that were opened */
  check(): void {
    const currentStats = this.#paths.map(tryStat)
    const isMissing = currentStats.some((stats, index) => !isSameFile(stats, this.#openedStats[index]))
    if (isMissing !== this.#isMissing) {
      this.#isMissing = isMissing
      this.#warn(`SQLite database ${this.#displayPath}: ${isMissing ? FILE_MISSING_MESSAGE : FILE_RESTORED_MESSAGE}`)
    }
    if (isMissing) throw new StoreUnavailableError(`SQLite database ${this.#displayPath}: ${FILE_MISSING_MESSAGE}`)
    this.#checkWalSize(Number(currentStats[1]!.size))
  }

  /** The same for a read, which costs little more than a look at the file: so this looks ten times a second. */
  checkBeforeRead(): void {
    const now = performance.now()
    if (!this.#isMissing && now < this.#nextReadCheckAt) return
    this.#nextReadCheckAt = now + 100
    this.check()
  }

  /** Whether another process opened the file with shared memory of its own: to close it would remove that one's log. */
  get isSharedMemoryReplaced(): boolean {
    const sharedMemory = tryStat(this.#paths[2]!)
    return sharedMemory !== undefined && !isSameFile(sharedMemory, this.#openedStats[2])
  }

  #checkWalSize(bytes: number): void {
    this.walBytes = bytes
    if (bytes < LARGE_WAL_BYTES) {
      this.#nextWarningBytes = LARGE_WAL_BYTES
    } else if (bytes >= this.#nextWarningBytes) {
      while (this.#nextWarningBytes <= bytes) this.#nextWarningBytes *= 2
      const size = `${Math.floor(bytes / 2 ** 20)} MiB`
      this.#warn(`SQLite database ${this.#displayPath}: its log (-wal) has ${size} of plants, ${LARGE_WAL_MESSAGE}`)
    }
  }
}

/** Where there was none and is none, that is the same: a connection that locks a file for good has no shared memory. */
const isSameFile = (current: BigIntStats | undefined, opened: BigIntStats | undefined): boolean =>
  current?.ino === opened?.ino && current?.dev === opened?.dev

function tryStat(path: string): BigIntStats | undefined {
  // To open the file would drop SQLite's locks on it.
  try {
    return statSync(path, { bigint: true })
  } catch {
    return undefined
  }
}
