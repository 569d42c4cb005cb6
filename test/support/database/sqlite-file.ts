import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { waitForOutput, type CleanupScope } from '../child-process.ts'
import { sqliteStore, type SqliteHandle, type SqliteStore } from '../../../src/stores/sqlite/sqlite-store.ts'
import { skipWithoutSqlite } from '../skip-reasons.ts'
import { createTempDirectory } from '../temp-files.ts'

export { skipWithoutSqlite }

/** Why to skip a test of `file:` URIs; false to run it. Node 22.13 treats them as file names. */
export const skipWithoutFileUris =
  skipWithoutSqlite || (process.version.startsWith('v22.13.') && 'this Node.js does not support file: URIs')

/** Returns a path in a new directory, which is removed when the test ends. */
export function createDatabasePath(t: CleanupScope): string {
  return join(createTempDirectory(t), 'plants.db')
}

/** Opens a `node:sqlite` database, and closes it when the test ends. */
export function openSqlite(t: CleanupScope, path: string, options = {}): SqliteHandle {
  const { DatabaseSync } = process.getBuiltinModule('node:sqlite')
  const handle = new DatabaseSync(path, options)
  t.after(() => handle.close())
  return handle
}

/** Opens a store in a file, by default a new one, and closes the store when the test ends. */
export function openSqliteStore(
  t: CleanupScope,
  options = {},
  path = createDatabasePath(t),
): { path: string; store: SqliteStore } {
  const store = sqliteStore(path, options)
  t.after(() => store.close())
  return { path, store }
}

/** Creates a database with 2,000 plants, and overwrites a page in the middle of the file. */
export async function createCorruptDatabase(path: string): Promise<void> {
  const store = sqliteStore(path)
  await Promise.all(
    Array.from({ length: 2000 }, async (_, i) => store.create('ada', { id: BigInt(i), name: 'Monstera deliciosa' })),
  )
  await store.close()
  const bytes = readFileSync(path)
  const middle = 4096 * Math.floor(bytes.length / 8192)
  writeFileSync(path, bytes.fill(0xff, middle, middle + 4096))
}

/**
 * Starts another process that executes SQL on a file and keeps the file open.
 * @returns a function that makes the process close the file after `closeDelayMs`, and waits until it has exited
 */
export async function runInOtherProcess(
  t: CleanupScope,
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
  await waitForOutput(child)
  return async () => {
    const exited = once(child, 'exit')
    child.stdin.write('end')
    await exited
  }
}

/**
 * Starts another process that takes the write lock of a file.
 * @returns a function that releases the lock after a delay
 */
export function lockFromOtherProcess(t: CleanupScope, path: string, releaseDelayMs = 0): Promise<() => Promise<void>> {
  return runInOtherProcess(t, path, 'BEGIN IMMEDIATE', releaseDelayMs)
}
