import { statSync, type BigIntStats } from 'node:fs'
import { StoreUnavailableError } from '../../plants/store.ts'
import { performance } from '../../timers.ts'
import { ask, pathOf, type SqliteHandle } from './handle.ts'

/** A log of this size is worth a warning, and so is each doubling. */
const LARGE_LOG_BYTES = 64 * 2 ** 20

const MOVED =
  'another file, or none, has its name or that of its log (-wal) or shared memory (-shm), so nothing is read or written'
const BACK = 'the file, its log and its shared memory are back'
const STUCK =
  'so do not truncate or remove it. SQLite empties it once no other process reads; that stops the service for a moment'

/** The file, its log and its shared memory. If one of them is moved, SQLite goes on, and what it acknowledges is lost. */
export class WatchedFile {
  readonly #name: string
  readonly #paths: readonly string[]
  readonly #warn: (message: string) => void
  readonly #opened: readonly (BigIntStats | undefined)[]
  #isAway = false
  #warnAt = LARGE_LOG_BYTES
  logBytes = 0
  #nextReadLookAt = 0

  /** @param name the path that the operator knows; SQLite may know another one, where its log is */
  constructor(name: string, handle: SqliteHandle, warn: (message: string) => void) {
    this.#name = name
    this.#warn = warn
    // To ask SQLite for it makes the log and the shared memory, if there are none.
    ask(handle, 'schema_version')
    const path = pathOf(handle)
    this.#paths = [name, `${path}-wal`, `${path}-shm`]
    this.#opened = this.#paths.map(find)
  }

  /** @throws StoreUnavailableError unless the file, its log and its shared memory are those that were opened */
  check(): void {
    const found = this.#paths.map(find)
    const isAway = found.some((file, at) => !isSame(file, this.#opened[at]))
    if (isAway !== this.#isAway) {
      this.#isAway = isAway
      this.#warn(`SQLite database ${this.#name}: ${isAway ? MOVED : BACK}`)
    }
    if (isAway) throw new StoreUnavailableError(`SQLite database ${this.#name}: ${MOVED}`)
    this.#watchLog(Number(found[1]!.size))
  }

  /** The same for a read, which costs little more than a look at the file: so this looks ten times a second. */
  checkForRead(): void {
    const now = performance.now()
    if (!this.#isAway && now < this.#nextReadLookAt) return
    this.#nextReadLookAt = now + 100
    this.check()
  }

  /** Whether another process opened the file with shared memory of its own: to close it would remove that one's log. */
  get isOpenedAnew(): boolean {
    const found = find(this.#paths[2]!)
    return found !== undefined && !isSame(found, this.#opened[2])
  }

  #watchLog(bytes: number): void {
    this.logBytes = bytes
    if (bytes < LARGE_LOG_BYTES) {
      this.#warnAt = LARGE_LOG_BYTES
    } else if (bytes >= this.#warnAt) {
      while (this.#warnAt <= bytes) this.#warnAt *= 2
      const size = `${Math.floor(bytes / 2 ** 20)} MiB`
      this.#warn(`SQLite database ${this.#name}: its log (-wal) has ${size} of plants, ${STUCK}`)
    }
  }
}

/** Where there was none and is none, that is the same: a connection that locks a file for good has no shared memory. */
const isSame = (found: BigIntStats | undefined, opened: BigIntStats | undefined): boolean =>
  found?.ino === opened?.ino && found?.dev === opened?.dev

function find(path: string): BigIntStats | undefined {
  // To open the file would drop SQLite's locks on it.
  try {
    return statSync(path, { bigint: true })
  } catch {
    return undefined
  }
}
