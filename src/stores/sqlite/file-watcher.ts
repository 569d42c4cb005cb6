import { statSync, type BigIntStats } from 'node:fs'
import { StoreUnavailableError } from '../../legacy/plants/store.ts'
import { performance } from '../../legacy/timers.ts'
import { readPragma, databasePathOf, type SqliteHandle } from './handle.ts'

/** The watcher warns when the WAL reaches this size, and each time the size doubles after that. */
const LARGE_WAL_BYTES = 64 * 2 ** 20

const FILE_MISSING_MESSAGE =
  'the database file, its WAL (-wal) or shared memory (-shm) was moved, deleted or replaced; the store is unavailable'
const FILE_RESTORED_MESSAGE = 'the database file, its WAL and its shared memory are back'
const LARGE_WAL_MESSAGE =
  'do not truncate or delete it. SQLite resets it once no other process is reading; this blocks the service briefly'

/**
 * Checks that a database file, its WAL and its shared memory are still the files that were opened. If one of them is
 * moved, SQLite continues to acknowledge writes, although those writes are lost.
 */
export class FileWatcher {
  readonly #displayPath: string
  readonly #paths: readonly string[]
  readonly #warn: (message: string) => void
  /** The stats of the three paths when the database was opened. */
  readonly #openedStats: readonly (BigIntStats | undefined)[]
  #isMissing = false
  #nextWarningBytes = LARGE_WAL_BYTES
  /** The size of the WAL at the last check. */
  walBytes = 0
  #nextReadCheckAt = 0

  /** @param displayPath the configured path; if it's a symbolic link, the WAL is next to the file that it points to */
  constructor(displayPath: string, handle: SqliteHandle, warn: (message: string) => void) {
    this.#displayPath = displayPath
    this.#warn = warn
    // Reading this pragma makes SQLite create the WAL and the shared memory if they don't exist.
    readPragma(handle, 'schema_version')
    const path = databasePathOf(handle)
    this.#paths = [displayPath, `${path}-wal`, `${path}-shm`]
    this.#openedStats = this.#paths.map(tryStat)
  }

  /** @throws StoreUnavailableError if one of the files isn't the one that was opened */
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

  /** Like {@link check}, but at most ten times a second, because checking takes almost as long as a whole read. */
  checkBeforeRead(): void {
    const now = performance.now()
    if (!this.#isMissing && now < this.#nextReadCheckAt) return
    this.#nextReadCheckAt = now + 100
    this.check()
  }

  /**
   * Whether another process has created new shared memory. Closing the database would then delete that process's WAL.
   */
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
      this.#warn(`SQLite database ${this.#displayPath}: the WAL (-wal) has ${size} of plants; ${LARGE_WAL_MESSAGE}`)
    }
  }
}

/**
 * Whether both stats belong to the same file. Two missing files count as the same file, because a connection in
 * exclusive locking mode never creates the shared-memory file.
 */
const isSameFile = (current: BigIntStats | undefined, opened: BigIntStats | undefined): boolean =>
  current?.ino === opened?.ino && current?.dev === opened?.dev

function tryStat(path: string): BigIntStats | undefined {
  // `fstat` isn't possible: opening and closing the file would release SQLite's locks on it.
  try {
    return statSync(path, { bigint: true })
  } catch {
    return undefined
  }
}
