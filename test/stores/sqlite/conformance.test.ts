import { createRequire } from 'node:module'
import { join } from 'node:path'
import { after, suite, test } from 'node:test'
import { storeConformance } from '../../../src/conformance/store-conformance.ts'
import { sqliteStore, type SqliteHandle } from '../../../src/stores/sqlite/sqlite-store.ts'
import { exactPages } from '../../support/database/exact-pages.ts'
import { skip } from '../../support/database/sqlite-file.ts'
import { temporaryDirectory } from '../../support/temporary-file.ts'

const directory = temporaryDirectory({ after })
let files = 0
const newPath = (): string => join(directory, `${++files}.db`)

// Its installation downloads or compiles, so it is no dependency; it is tested if `npm install --no-save` has put it
// there.
const Database = findBetterSqlite3()
const skipHandle = Database === undefined && 'better-sqlite3 is not installed'

for (const [name, skipped, source] of [
  ['a path', skip, newPath],
  ['a handle of better-sqlite3', skipHandle, () => new Database!(newPath())],
] as const) {
  suite(name, { skip: skipped }, () => {
    storeConformance({ test, create: () => sqliteStore(source()) })
    exactPages(test, () => sqliteStore(source()))
  })
}

function findBetterSqlite3(): (new (path: string) => SqliteHandle) | undefined {
  try {
    return createRequire(import.meta.url)('better-sqlite3') as new (path: string) => SqliteHandle
  } catch {
    return undefined
  }
}
