import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { StoreUnavailableError } from '../../../src/plants/store.ts'
import { explain, explainCommit, explainOpening, isBusy } from '../../../src/stores/sqlite/errors.ts'

const MESSAGE = 'SQLite database plants.db: no'

/** As each driver names a code: `node:sqlite` by number, better-sqlite3 by name. */
function errorsWith(errcode: number, code: string): Error[] {
  return [{ errcode }, { code }].map((fields) => Object.assign(new Error('no'), fields))
}

suite('is worth trying again after', () => {
  for (const [errcode, code, isCommitUnknown] of [
    [5, 'SQLITE_BUSY', false],
    [517, 'SQLITE_BUSY_SNAPSHOT', false],
    [6, 'SQLITE_LOCKED', true],
    [262, 'SQLITE_LOCKED_SHAREDCACHE', true],
    [7, 'SQLITE_NOMEM', true],
    [10, 'SQLITE_IOERR', true],
    [778, 'SQLITE_IOERR_WRITE', true],
    [1034, 'SQLITE_IOERR_FSYNC', true],
    [13, 'SQLITE_FULL', true],
    [14, 'SQLITE_CANTOPEN', true],
  ] as const) {
    test(`${code}, ${isCommitUnknown ? 'which leaves unknown' : 'and knows'} what became of a commit`, () => {
      for (const error of errorsWith(errcode, code)) {
        const explained = explain(error, 'plants.db')
        assert.ok(explained instanceof StoreUnavailableError)
        assert.deepEqual([explained.message, explained.cause], [MESSAGE, error])
        assert.equal(isBusy(error), code.startsWith('SQLITE_BUSY'))

        const commit = explainCommit(error, 'plants.db')
        if (!isCommitUnknown) {
          assert.equal(commit, error)
          continue
        }
        const { message, cause, isOutcomeUnknown } = commit as StoreUnavailableError
        assert.deepEqual([isOutcomeUnknown, message, cause], [true, MESSAGE, error])
        assert.equal(explain(commit, 'plants.db'), commit)
      }
    })
  }
})

test('is not worth trying again after any other error', () => {
  const corrupt = errorsWith(11, 'SQLITE_CORRUPT')
  for (const error of [...corrupt, ...errorsWith(26, 'SQLITE_NOTADB'), new Error('no')]) {
    const { name, message, cause } = explain(error, 'plants.db')
    assert.deepEqual([name, message, cause, isBusy(error)], ['Error', MESSAGE, error, false])
    assert.equal(explainCommit(error, 'plants.db'), error)
  }
})

test('at the start, waiting helps with a lock or a full disk, and not if there is no file', () => {
  const errors = [
    ...errorsWith(5, 'SQLITE_BUSY'),
    ...errorsWith(13, 'SQLITE_FULL'),
    ...errorsWith(14, 'SQLITE_CANTOPEN'),
  ]
  const helps = errors.map((error) => explainOpening(error, 'plants.db') instanceof StoreUnavailableError)
  assert.deepEqual(helps, [true, true, true, true, false, false])
})
