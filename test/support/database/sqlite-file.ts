import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { isBuiltin } from 'node:module'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { sqliteStore, type SqliteHandle, type SqliteStore } from '../../../src/stores/sqlite/sqlite-store.ts'
import { createTempDirectory } from '../temp-files.ts'

/** Why a test that takes `node:sqlite` is skipped here; false if it is not. */
export const skipWithoutSqlite = isBuiltin('node:sqlite') ? false : `Node.js ${process.version} has no node:sqlite`

/** Why a test of `file:` URIs is skipped here; false if it isn't. Node 22.13 takes them for the names of files. */
export const skipWithoutFileUris =
  skipWithoutSqlite || (process.version.startsWith('v22.13.') && 'this Node.js has no URIs of SQLite')

/** A path in a directory of its own, which goes away with the test. */
export function createDatabasePath(t: TestContext): string {
  return join(createTempDirectory(t), 'plants.db')
}

/** A `node:sqlite` database, closed with the test. */
export function openSqlite(t: TestContext, path: string, options = {}): SqliteHandle {
  const { DatabaseSync } = process.getBuiltinModule('node:sqlite')
  const handle = new DatabaseSync(path, options)
  t.after(() => handle.close())
  return handle
}

/** Opens a store in a file, by default a new one; it is closed with the test. */
export function openSqliteStore(
  t: TestContext,
  options = {},
  path = createDatabasePath(t),
): { path: string; store: SqliteStore } {
  const store = sqliteStore(path, options)
  t.after(() => store.close())
  return { path, store }
}

/** Another process that has run SQL on a file, and has the file open until it is told to close it, so long after that. */
export async function runInOtherProcess(
  t: TestContext,
  path: string,
  sql: string,
  closeDelayMs = 0,
): Promise<() => Promise<void>> {
  const script = `
    const database = new (process.getBuiltinModule('node:sqlite').DatabaseSync)(process.argv[1])
    database.exec(process.argv[2])
    process.stdout.write('begun')
    process.stdin.once('data', () => setTimeout(() => { database.close(); process.exit() }, ${closeDelayMs}))`
  const child = spawn(process.execPath, ['-e', script, path, sql], { stdio: ['pipe', 'pipe', 'inherit'] })
  t.after(() => child.kill())
  await once(child.stdout, 'data')
  return async () => {
    const exited = once(child, 'exit')
    child.stdin.write('end')
    await exited
  }
}

/** Has another process take the write lock of a file, until so long after it is told to let go. */
export function lockFromOtherProcess(t: TestContext, path: string, releaseDelayMs = 0): Promise<() => Promise<void>> {
  return runInOtherProcess(t, path, 'BEGIN IMMEDIATE', releaseDelayMs)
}
