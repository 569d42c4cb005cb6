import { closeSync, openSync, readSync, statSync } from 'node:fs'
import { ask, type SqliteHandle } from './handle.ts'

/** The sizes of the headers of a log and of each of its frames (sqlite.org/fileformat.html section 4.1). */
const HEADER_BYTES = 32
const FRAME_HEADER_BYTES = 24

/** How a log begins: with the order of the bytes in its checksums. */
const MAGIC: readonly number[] = [0x377f0682, 0x377f0683]

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

/** Reads what frames a log has, without their pages; undefined if it has no commit. */
function readLog(path: string): Log | undefined {
  let file
  try {
    file = openSync(path, 'r')
  } catch {
    return undefined
  }
  try {
    const header = Buffer.alloc(HEADER_BYTES)
    readSync(file, header, 0, HEADER_BYTES, 0)
    if (!MAGIC.includes(header.readUInt32BE(0))) return undefined
    const pageBytes = header.readUInt32BE(8)
    const salts = header.subarray(16, 24)
    const frame = Buffer.alloc(FRAME_HEADER_BYTES)
    const held = new Set<number>()
    let pages = 0
    let at = HEADER_BYTES
    // Behind the frames of this log may be those of an earlier one, with other salts.
    while (
      readSync(file, frame, 0, FRAME_HEADER_BYTES, at) === FRAME_HEADER_BYTES &&
      frame.subarray(8, 16).equals(salts)
    ) {
      held.add(frame.readUInt32BE(0))
      pages = frame.readUInt32BE(4) || pages
      at += FRAME_HEADER_BYTES + pageBytes
    }
    return pages === 0 ? undefined : { bytes: at, pageBytes, pages, held }
  } finally {
    closeSync(file)
  }
}
