import { closeSync, existsSync, openSync, readSync, statSync } from 'node:fs'
import { ask, type SqliteHandle } from './handle.ts'

/** The sizes of the header of a log and of the header of each frame (sqlite.org/fileformat.html section 4.1). */
const HEADER_BYTES = 32
const FRAME_HEADER_BYTES = 24

/** How a log begins. The last bit says the byte order of its checksums. */
const MAGIC = 0x377f0682

/** A file that has, with its log, at most this size is read as a whole, which takes about 0.2 s. */
const QUICK_BYTES = 64 * 2 ** 20

/**
 * Checks that the log beside a file belongs to it. SQLite does not: if a backup was copied over the file, it would
 * bring the pages of the log into the backup.
 * @param path the path that SQLite knows; empty if the database has no file
 * @param handle the open file; not given if there is none
 * @throws Error if the log belongs to another file, as far as that can be seen
 */
export function checkLog(path: string, handle?: SqliteHandle): void {
  const log = path === '' ? undefined : readLog(`${path}-wal`)
  if (log === undefined) return
  const size = statSync(path, { throwIfNoEntry: false })?.size ?? 0
  if (handle === undefined || size === 0) throw misfit('the file is missing or empty')
  let missing = 0
  for (let page = Math.floor(size / log.pageBytes) + 1; page <= log.pages; page++) if (!log.held.has(page)) missing++
  // Pages that were never written: some free ones, and the one at the first GiB, where SQLite has its locks.
  if (missing > Number(ask(handle, 'freelist_count')) + 1) throw misfit(`${missing} pages are in neither`)
  if (size + log.bytes > QUICK_BYTES) return
  const finding = String(ask(handle, 'quick_check(1)'))
  if (finding !== 'ok') throw misfit(finding.replaceAll('\n', ' '))
}

function misfit(reason: string): Error {
  return new Error(`the log that was left beside it (-wal) is not its own, see "Restore" in docs/sqlite.md: ${reason}`)
}

/**
 * Reads which pages a log has; undefined if it has no commit. A wrong checksum ends the log: behind it may be the rest
 * of a commit that failed, or of an earlier log.
 */
function readLog(path: string) {
  if (!existsSync(path)) return undefined
  const file = openSync(path, 'r')
  try {
    const header = Buffer.alloc(HEADER_BYTES)
    readSync(file, header)
    const magic = header.readUInt32BE(0)
    const isLittleEndian = magic === MAGIC
    let checksum = extend([0, 0], header.subarray(0, 24), isLittleEndian)
    if (magic >>> 1 !== MAGIC >>> 1 || !isAt(header, 24, checksum)) return undefined
    const pageBytes = header.readUInt32BE(8)
    const frame = Buffer.alloc(FRAME_HEADER_BYTES + pageBytes)
    // The numbers of the pages that the log has, and how many the database has after the last commit.
    const held = new Set<number>()
    let pages = 0
    let bytes = HEADER_BYTES
    while (readSync(file, frame, 0, frame.length, bytes) === frame.length) {
      checksum = extend(checksum, frame.subarray(0, 8), isLittleEndian)
      checksum = extend(checksum, frame.subarray(FRAME_HEADER_BYTES), isLittleEndian)
      if (!isAt(frame, 16, checksum)) break
      held.add(frame.readUInt32BE(0))
      pages = frame.readUInt32BE(4) || pages
      bytes += frame.length
    }
    return pages === 0 ? undefined : { bytes, pageBytes, pages, held }
  } finally {
    closeSync(file)
  }
}

type Checksum = readonly [number, number]

/** The checksum of a log after more of its bytes (sqlite.org/fileformat.html section 4.2). */
function extend([first, second]: Checksum, bytes: Buffer, isLittleEndian: boolean): Checksum {
  const words = new DataView(bytes.buffer, bytes.byteOffset, bytes.length)
  for (let at = 0; at < bytes.length; at += 8) {
    first = (first + words.getUint32(at, isLittleEndian) + second) | 0
    second = (second + words.getUint32(at + 4, isLittleEndian) + first) | 0
  }
  return [first, second]
}

function isAt(bytes: Buffer, at: number, [first, second]: Checksum): boolean {
  return bytes.readInt32BE(at) === first && bytes.readInt32BE(at + 4) === second
}
