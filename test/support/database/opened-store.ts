import type { TestContext } from 'node:test'
import { sqliteStore, type SqliteStoreOptions } from '../../../src/stores/sqlite/sqlite-store.ts'
import { newPath } from './sqlite-file.ts'

interface OpenedStore {
  readonly path: string
  readonly store: ReturnType<typeof sqliteStore>
}

/** Opens a store in a file, by default a new one; it is closed with the test. */
export function openStore(t: TestContext, options: SqliteStoreOptions = {}, path = newPath(t)): OpenedStore {
  const store = sqliteStore(path, options)
  t.after(() => store.close())
  return { path, store }
}
