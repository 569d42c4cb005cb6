import { accessSync, closeSync, constants, openSync, statSync, type Stats } from 'node:fs'
import { dirname, resolve } from 'node:path'
import type { DatabasePath } from './sqlite-path.ts'

/** The files of a database: itself, its write-ahead log, its shared memory and its rollback journal. */
const databaseFilesOf = (file: string): string[] => ['', '-wal', '-shm', '-journal'].map((suffix) => file + suffix)

/** Creates a missing database file that only its user can read. @throws Error if it may not be created */
export function createDatabaseFile({ file, canCreate }: DatabasePath, migrate: boolean): void {
  if (file === undefined) return
  checkDatabaseFiles(file)
  // An existing file isn't opened here, because closing it would release the locks that this process has on it.
  if (statIfExists(file) !== undefined) return
  if (!canCreate || !migrate) throw new Error('the file does not exist, and may not be created')
  // Another process can create the file at the same moment. SQLite gives the WAL and the shared memory the same mode.
  closeSync(openSync(file, 'a', 0o600))
}

/**
 * Checks the files of a database before SQLite reads them: it would delete a WAL whose database file is missing or
 * empty, and wait forever for a FIFO.
 * @param file empty for a database without a file
 */
export function checkDatabaseFiles(file: string): void {
  if (file === '') return
  for (const path of databaseFilesOf(file)) {
    if (statIfExists(path)?.isFile() === false) throw new Error(`${path} is not a regular file`)
  }
  // The WAL first, because a process that creates a database writes the file before the WAL.
  const walBytes = statIfExists(`${file}-wal`)?.size ?? 0
  const fileBytes = statIfExists(file)?.size ?? 0
  if (walBytes === 0 || fileBytes !== 0) return
  throw new Error('its log (-wal) may hold plants, but the file is missing or empty; SQLite would remove the log')
}

const statIfExists = (path: string): Stats | undefined => statSync(path, { throwIfNoEntry: false })

/** Returns the first reason why this process can't use the files of a database, which SQLite doesn't report. */
export function findAccessError(file: string): string[] {
  const { R_OK, W_OK, X_OK } = constants
  const files = databaseFilesOf(resolve(file))
  const messages = [...files, dirname(files[0]!)].flatMap((path) => {
    try {
      accessSync(path, files.includes(path) ? R_OK | W_OK : W_OK | X_OK)
      return []
    } catch (error) {
      return [(error as Error).message]
    }
  })
  return messages.filter((message) => !message.startsWith('ENOENT')).slice(0, 1)
}

/** Warns of files that other users can read or write, and of a folder where they can replace the files. */
export function warnAboutPermissions(file: string, warn: (message: string) => void): void {
  for (const path of databaseFilesOf(file)) {
    const mode = modeOf(path)
    const permissions = ['read', 'write'].filter((_, i) => (mode & (4 >> i)) !== 0)
    if (permissions.length > 0) warn(`other users can ${permissions.join(' and ')} ${path} (mode ${mode.toString(8)})`)
  }
  const directory = dirname(file)
  const mode = modeOf(directory)
  // With the sticky bit, as /tmp has it, users can remove only files of their own.
  if ((mode & 0o1002) === 0o002) warn(`other users can replace files in ${directory} (mode ${mode.toString(8)})`)
}

/** The permissions of a file; none if it can't be looked at. */
function modeOf(path: string): number {
  try {
    return statSync(path).mode & 0o7777
  } catch {
    return 0
  }
}
