import { once } from 'node:events'
import { join } from 'node:path'
import process from 'node:process'
import type { DatabaseSync } from 'node:sqlite'
import type { Store } from '../../src/plants/store.ts'
import { sqliteStore, type SqliteStore, type SqliteStoreOptions } from '../../src/stores/sqlite/sqlite-store.ts'
import { startChild, waitForOutput, type CleanupScope } from './child-process.ts'
import { createTempDirectory } from './temp-files.ts'

/** Returns a path in a new directory, which is deleted when the scope ends. */
export const createDatabasePath = (t: CleanupScope): string => join(createTempDirectory(t), 'plants.db')

/** Opens a database, and closes it when the scope ends. */
export function openDatabase(t: CleanupScope, path: string): DatabaseSync {
  const { DatabaseSync } = process.getBuiltinModule('node:sqlite')
  const database = new DatabaseSync(path)
  t.after(() => database.close())
  return database
}

/** Executes SQL on a file. */
export function runSql(path: string, sql: string): void {
  const { DatabaseSync } = process.getBuiltinModule('node:sqlite')
  const database = new DatabaseSync(path)
  database.exec(sql)
  database.close()
}

/** Opens a store in a file, by default a new one, and closes the store when the scope ends. */
export function openSqliteStore(
  t: CleanupScope,
  options: SqliteStoreOptions = {},
  path = createDatabasePath(t),
): { path: string; store: SqliteStore } {
  const store = sqliteStore(path, options)
  t.after(() => store.close())
  return { path, store }
}

/** Returns the ids of all plants of an owner. */
export async function listIds(store: Store, owner = 'ada'): Promise<bigint[]> {
  const { plants } = await store.list(owner, { limit: 100_000, maxBytes: 2 ** 30 })
  return plants.map(({ id }) => id)
}

/** Starts another process that executes SQL on a file and keeps it open. Returns a function that ends the process. */
export async function runInOtherProcess(t: CleanupScope, path: string, sql: string): Promise<() => Promise<void>> {
  const script = `
    const database = new (process.getBuiltinModule('node:sqlite').DatabaseSync)(process.argv[1])
    database.exec(process.argv[2])
    process.stdout.write('done')
    setInterval(() => {}, 1000)`
  const child = startChild(t, process.execPath, ['-e', script, path, sql], { stdio: ['ignore', 'pipe', 'inherit'] })
  const exited = once(child, 'exit')
  await waitForOutput(child)
  return async () => {
    child.kill('SIGKILL')
    await exited
  }
}
