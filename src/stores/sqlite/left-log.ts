import { closeSync, openSync, readSync, statSync } from 'node:fs'
import { ask, type SqliteHandle } from './handle.ts'

/** The sizes of the headers of a log and of each of its frames (sqlite.org/fileformat.html section 4.1). */
const HEADER_BYTES = 32
const FRAME_HEADER_BYTES = 24

/** How a log begins: with the order of the bytes in its checksums, which the last bit says. */
const MAGIC = 0x377f0682

/** A file with its log that is at most so large is read as a whole, which takes about 0.2 s. */
const QUICK_BYTES = 64 * 2 ** 20

/** What a log says of the database to which it belongs. */
interface Log {
  readonly bytes: number
  readonly pageBytes: number
  /** How many pages the database has after the last commit. */
  readonly pages: number
  /** The numbers of the pages of which the log has a version. */
  readonly held: ReadonlySet<number>
}

/**
 * Checks that the log that was left beside a file belongs to it. SQLite itself does not: if a backup was copied over the
 * file, it brings the pages of the log into the backup.
 * @param path by which SQLite knows the file; empty if the database has none
 * @param handle to the file; not given if there is none
 * @throws Error if the log belongs to another file, as far as that can be seen
 */
export function checkLog(path: string, handle?: SqliteHandle): void {
  const log = path === '' ? undefined : readLog(`${path}-wal`)
  if (log === undefined) return
  const size = statSync(path, { throwIfNoEntry: false })?.size ?? 0
  if (handle === undefined || size === 0) throw misfit('the file is missing or empty')
  let missing = 0
  for (let page = Math.floor(size / log.pageBytes) + 1; page <= log.pages; page++) if (!log.held.has(page)) missing++
  // Pages that were never written: some that are free, and the one at the first GiB, where SQLite has its locks.
  if (missing > Number(ask(handle, 'freelist_count')) + 1) throw misfit(`${missing} pages are in neither`)
  if (size + log.bytes > QUICK_BYTES) return
  const finding = String(ask(handle, 'quick_check(1)'))
  if (finding !== 'ok') throw misfit(finding.replaceAll('\n', ' '))
}

function misfit(reason: string): Error {
  return new Error(`the log that was left beside it (-wal) is not its own, see "Restore" in docs/sqlite.md: ${reason}`)
}

/**
 * Reads which pages a log has; undefined if it has no commit. It ends where a checksum is wrong: behind that may be what is
 * left of a commit that failed, or of an earlier log.
 */
function readLog(path: string): Log | undefined {
  let file
  try {
    file = openSync(path, 'r')
  } catch {
    return undefined
  }
  try {
    const header = Buffer.alloc(HEADER_BYTES)
    readSync(file, header)
    const checksum = new Checksum(header.readUInt32BE(0) === MAGIC)
    checksum.add(header.subarray(0, 24))
    if (header.readUInt32BE(0) >>> 1 !== MAGIC >>> 1 || !checksum.equals(header.subarray(24))) return undefined
    const pageBytes = header.readUInt32BE(8)
    const frame = Buffer.alloc(FRAME_HEADER_BYTES + pageBytes)
    const held = new Set<number>()
    let pages = 0
    let bytes = HEADER_BYTES
    while (readSync(file, frame, 0, frame.length, bytes) === frame.length) {
      checksum.add(frame.subarray(0, 8))
      checksum.add(frame.subarray(FRAME_HEADER_BYTES))
      if (!checksum.equals(frame.subarray(16, FRAME_HEADER_BYTES))) break
      held.add(frame.readUInt32BE(0))
      pages = frame.readUInt32BE(4) || pages
      bytes += frame.length
    }
    return pages === 0 ? undefined : { bytes, pageBytes, pages, held }
  } finally {
    closeSync(file)
  }
}

/** The checksum of a log, over all that was added (sqlite.org/fileformat.html section 4.2). */
class Checksum {
  readonly #isLittleEndian: boolean
  #first = 0
  #second = 0

  constructor(isLittleEndian: boolean) {
    this.#isLittleEndian = isLittleEndian
  }

  add({ buffer, byteOffset, length }: Buffer): void {
    const words = new DataView(buffer, byteOffset, length)
    let [first, second] = [this.#first, this.#second]
    for (let at = 0; at < length; at += 8) {
      first = (first + words.getUint32(at, this.#isLittleEndian) + second) | 0
      second = (second + words.getUint32(at + 4, this.#isLittleEndian) + first) | 0
    }
    this.#first = first
    this.#second = second
  }

  equals(bytes: Buffer): boolean {
    return bytes.readInt32BE(0) === this.#first && bytes.readInt32BE(4) === this.#second
  }
}
