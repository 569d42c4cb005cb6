import assert from 'node:assert/strict'
import { test } from 'node:test'
import { StoreUnavailableError } from '../../../src/plants/store.ts'
import { toStoreError, toCommitError, toOpenError, isBusy, isRejectedValue } from '../../../src/stores/sqlite/errors.ts'

const MESSAGE = 'SQLite database plants.db: no'

for (const [errcode, code, ...helps] of [
  [5, 'SQLITE_BUSY', 'retryable', 'retryable at startup'],
  [517, 'SQLITE_BUSY_SNAPSHOT', 'retryable', 'retryable at startup'],
  [6, 'SQLITE_LOCKED', 'retryable', 'retryable at startup', 'of unknown outcome after a commit'],
  [262, 'SQLITE_LOCKED_SHAREDCACHE', 'retryable', 'retryable at startup', 'of unknown outcome after a commit'],
  [7, 'SQLITE_NOMEM', 'retryable', 'retryable at startup', 'of unknown outcome after a commit'],
  [10, 'SQLITE_IOERR', 'retryable', 'retryable at startup', 'of unknown outcome after a commit'],
  [778, 'SQLITE_IOERR_WRITE', 'retryable', 'retryable at startup', 'of unknown outcome after a commit'],
  [1034, 'SQLITE_IOERR_FSYNC', 'retryable', 'retryable at startup', 'of unknown outcome after a commit'],
  [13, 'SQLITE_FULL', 'retryable', 'retryable at startup', 'of unknown outcome after a commit'],
  [14, 'SQLITE_CANTOPEN', 'retryable', 'of unknown outcome after a commit'],
  [3, 'SQLITE_PERM', 'retryable', 'of unknown outcome after a commit'],
  [8, 'SQLITE_READONLY', 'retryable', 'of unknown outcome after a commit'],
  [15, 'SQLITE_PROTOCOL', 'retryable', 'retryable at startup', 'of unknown outcome after a commit'],
  [18, 'SQLITE_TOOBIG'],
  [19, 'SQLITE_CONSTRAINT'],
  [11, 'SQLITE_CORRUPT'],
  [26, 'SQLITE_NOTADB'],
] as const) {
  test(`${code} is ${helps.join(', ') || 'permanent'}`, () => {
    // `node:sqlite` errors have a numeric `errcode`, better-sqlite3 errors have a `code` with the name.
    for (const named of [{ errcode }, { code }]) {
      const error = Object.assign(new Error('no'), named)
      const [explained, opening] = [toStoreError(error, 'plants.db'), toOpenError(error, 'plants.db', undefined)]
      for (const { message, cause } of [explained, opening]) assert.deepEqual([message, cause], [MESSAGE, error])
      const commit = toCommitError(error, 'plants.db') as StoreUnavailableError
      const found = [
        explained instanceof StoreUnavailableError && 'retryable',
        opening instanceof StoreUnavailableError && 'retryable at startup',
        commit.isOutcomeUnknown && 'of unknown outcome after a commit',
      ]
      assert.deepEqual(found.filter(Boolean), helps)
      assert.equal(isBusy(error), code.startsWith('SQLITE_BUSY'))
      assert.equal(isRejectedValue(error), code === 'SQLITE_CONSTRAINT' || code === 'SQLITE_TOOBIG')
      if (commit.isOutcomeUnknown) assert.deepEqual([commit.message, commit.cause], [MESSAGE, error])
      else assert.equal(commit, error)
    }
  })
}
