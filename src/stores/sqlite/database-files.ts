import { accessSync, closeSync, constants, openSync, statSync, type Stats } from 'node:fs'
import { dirname, resolve } from 'node:path'
import type { DatabasePath } from './sqlite-path.ts'

/** Returns the paths of a database file, its WAL, its shared memory and its rollback journal. */
const databaseFilesOf = (file: string): string[] => ['', '-wal', '-shm', '-journal'].map((suffix) => file + suffix)

/** Creates a missing database file with mode 600. @throws Error if the file is missing and must not be created */
export function createDatabaseFile({ file, canCreate }: DatabasePath, migrate: boolean): void {
  if (file === undefined) return
  checkDatabaseFiles(file)
  // An existing file isn't opened here, because closing it would release the locks that this process holds on it.
  if (statIfExists(file) !== undefined) return
  if (!canCreate) throw new Error('the file does not exist, and the mode in its URI forbids creating it')
  if (!migrate) throw new Error('the file does not exist and migrations are disabled')
  // The flag `a` doesn't fail if another process has just created the file. SQLite gives the WAL and the shared memory
  // the same mode as the database file.
  closeSync(openSync(file, 'a', 0o600))
}

/**
 * Checks the files of a database before SQLite opens them. SQLite would delete a WAL whose database file is missing or
 * empty, and hang on a FIFO.
 * @param file path of the database file; empty for an in-memory or temporary database
 * @throws Error if SQLite must not open these files
 */
export function checkDatabaseFiles(file: string): void {
  if (file === '') return
  for (const path of databaseFilesOf(file)) {
    if (statIfExists(path)?.isFile() === false) throw new Error(`${path} is not a regular file`)
  }
  // Another process might be creating the database. It writes the database file before the WAL, so if the first check
  // finds the WAL, the database file exists by the time of the second check.
  const walBytes = statIfExists(`${file}-wal`)?.size ?? 0
  const fileBytes = statIfExists(file)?.size ?? 0
  if (walBytes === 0 || fileBytes !== 0) return
  throw new Error(
    'the database file is missing or empty, but its WAL (-wal) can contain plants; opening it would delete the WAL',
  )
}

const statIfExists = (path: string): Stats | undefined => statSync(path, { throwIfNoEntry: false })

/**
 * Returns the first permission error for the database files and their directory, if any. SQLite doesn't report which
 * file it couldn't access.
 */
export function findAccessError(file: string): string | undefined {
  const { R_OK, W_OK, X_OK } = constants
  const files = databaseFilesOf(resolve(file))
  const messages = [...files, dirname(files[0]!)].flatMap((path) => {
    try {
      accessSync(path, files.includes(path) ? R_OK | W_OK : W_OK | X_OK)
      return []
    } catch (error) {
      return (error as Error).message
    }
  })
  return messages.find((message) => !message.startsWith('ENOENT'))
}

/** Warns about database files that other users can read, write or replace. */
export function warnAboutPermissions(file: string, warn: (message: string) => void): void {
  for (const path of databaseFilesOf(file)) {
    const mode = modeOf(path)
    const permissions = ['read', 'write'].filter((_, i) => (mode & (4 >> i)) !== 0)
    if (permissions.length > 0) warn(`other users can ${permissions.join(' and ')} ${path} (mode ${mode.toString(8)})`)
  }
  const directory = dirname(file)
  const mode = modeOf(directory)
  // In a directory with the sticky bit, such as /tmp, users can remove only their own files.
  if ((mode & 0o1002) === 0o002) warn(`other users can replace files in ${directory} (mode ${mode.toString(8)})`)
}

/** Returns the permission bits of a file, or 0 if they can't be read. */
function modeOf(path: string): number {
  try {
    return statSync(path).mode & 0o7777
  } catch {
    return 0
  }
}
