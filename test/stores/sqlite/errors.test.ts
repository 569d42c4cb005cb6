import assert from 'node:assert/strict'
import { test } from 'node:test'
import { StoreUnavailableError } from '../../../src/plants/store.ts'
import { explain, explainCommit, explainOpening, isBusy } from '../../../src/stores/sqlite/errors.ts'

const MESSAGE = 'SQLite database plants.db: no'

/** As each driver names a code: `node:sqlite` by number, better-sqlite3 by name. */
function errorsWith(errcode: number, code: string): Error[] {
  return [{ errcode }, { code }].map((fields) => Object.assign(new Error('no'), fields))
}

for (const [errcode, code, ...helps] of [
  [5, 'SQLITE_BUSY', 'trying again', 'waiting at the start'],
  [517, 'SQLITE_BUSY_SNAPSHOT', 'trying again', 'waiting at the start'],
  [6, 'SQLITE_LOCKED', 'trying again', 'waiting at the start', 'looking after a commit'],
  [262, 'SQLITE_LOCKED_SHAREDCACHE', 'trying again', 'waiting at the start', 'looking after a commit'],
  [7, 'SQLITE_NOMEM', 'trying again', 'waiting at the start', 'looking after a commit'],
  [10, 'SQLITE_IOERR', 'trying again', 'waiting at the start', 'looking after a commit'],
  [778, 'SQLITE_IOERR_WRITE', 'trying again', 'waiting at the start', 'looking after a commit'],
  [1034, 'SQLITE_IOERR_FSYNC', 'trying again', 'waiting at the start', 'looking after a commit'],
  [13, 'SQLITE_FULL', 'trying again', 'waiting at the start', 'looking after a commit'],
  [14, 'SQLITE_CANTOPEN', 'trying again', 'looking after a commit'],
  [19, 'SQLITE_CONSTRAINT'],
  [11, 'SQLITE_CORRUPT'],
  [26, 'SQLITE_NOTADB'],
] as const) {
  test(`${code}: what helps is ${helps.join(', ') || 'nothing'}`, () => {
    for (const error of errorsWith(errcode, code)) {
      const [explained, opening] = [explain(error, 'plants.db'), explainOpening(error, 'plants.db')]
      for (const { message, cause } of [explained, opening]) assert.deepEqual([message, cause], [MESSAGE, error])
      const commit = explainCommit(error, 'plants.db') as StoreUnavailableError
      const found: [string, boolean][] = [
        ['trying again', explained instanceof StoreUnavailableError],
        ['waiting at the start', opening instanceof StoreUnavailableError],
        ['looking after a commit', commit.isOutcomeUnknown],
      ]
      assert.deepEqual(
        found.filter(([, isSo]) => isSo).map(([name]) => name),
        helps,
      )
      assert.equal(isBusy(error), code.startsWith('SQLITE_BUSY'))
      if (commit.isOutcomeUnknown) assert.deepEqual([commit.message, commit.cause], [MESSAGE, error])
      else assert.equal(commit, error)
    }
  })
}
