import { mkdtempSync, rmSync } from 'node:fs'
import { createRequire, isBuiltin } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import process from 'node:process'
import { after, suite, test } from 'node:test'
import { storeConformance } from '../../../src/conformance/store-conformance.ts'
import type { Store } from '../../../src/plants/store.ts'
import { sqliteStore, type SqliteHandle } from '../../../src/stores/sqlite/sqlite-store.ts'
import { exactPages } from '../../support/database/exact-pages.ts'

const directory = mkdtempSync(join(tmpdir(), 'plant-store-'))
const handles: SqliteHandle[] = []
after(() => {
  for (const handle of handles) handle.close()
  rmSync(directory, { recursive: true })
})

let files = 0
const newPath = (): string => join(directory, `${++files}.db`)

if (isBuiltin('node:sqlite')) {
  suite('a path', () => keepsContract(() => sqliteStore(newPath())))
} else {
  test('a path keeps the contract', { skip: `Node.js ${process.version} has no node:sqlite` })
}

// Its installation downloads or compiles, so it is no dependency; it is tested if `npm install --no-save` has put it
// there.
const Database = findBetterSqlite3()
if (Database === undefined) {
  test('a handle of better-sqlite3 keeps the contract', { skip: 'better-sqlite3 is not installed' })
} else {
  suite('a handle of better-sqlite3', () =>
    keepsContract(() => {
      const handle = new Database(newPath())
      handles.push(handle)
      return sqliteStore(handle)
    }),
  )
}

function keepsContract(create: () => Store): void {
  storeConformance({ test, create })
  exactPages(test, create)
}

function findBetterSqlite3(): (new (path: string) => SqliteHandle) | undefined {
  try {
    return createRequire(import.meta.url)('better-sqlite3') as new (path: string) => SqliteHandle
  } catch {
    return undefined
  }
}
