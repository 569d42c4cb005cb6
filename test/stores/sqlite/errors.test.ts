import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { StoreUnavailableError } from '../../../src/plants/store.ts'
import { explain, explainCommit, explainOpening, isBusy } from '../../../src/stores/sqlite/errors.ts'

/** As each driver names a code: `node:sqlite` by number, better-sqlite3 by name. */
function errorsWith(errcode: number, code: string): Error[] {
  return [{ errcode }, { code }].map((fields) => Object.assign(new Error('no'), fields))
}

suite('is worth trying again after', () => {
  for (const [errcode, code] of [
    [5, 'SQLITE_BUSY'],
    [517, 'SQLITE_BUSY_SNAPSHOT'],
    [6, 'SQLITE_LOCKED'],
    [262, 'SQLITE_LOCKED_SHAREDCACHE'],
    [7, 'SQLITE_NOMEM'],
    [10, 'SQLITE_IOERR'],
    [778, 'SQLITE_IOERR_WRITE'],
    [13, 'SQLITE_FULL'],
    [14, 'SQLITE_CANTOPEN'],
  ] as const) {
    test(code, () => {
      for (const error of errorsWith(errcode, code)) {
        const explained = explain(error, 'plants.db')
        assert.ok(explained instanceof StoreUnavailableError)
        assert.deepEqual([explained.message, explained.cause], ['SQLite database plants.db: no', error])
        assert.equal(isBusy(error), code.startsWith('SQLITE_BUSY'))
      }
    })
  }
})

suite('is not worth trying again after', () => {
  for (const [name, ...errors] of [
    ['SQLITE_CORRUPT', ...errorsWith(11, 'SQLITE_CORRUPT')],
    ['SQLITE_NOTADB', ...errorsWith(26, 'SQLITE_NOTADB')],
    ['an error without a code', new Error('no')],
  ] as const) {
    test(name, () => {
      for (const error of errors) {
        const explained = explain(error, 'plants.db')
        assert.equal(explained.name, 'Error')
        assert.deepEqual([explained.message, explained.cause], ['SQLite database plants.db: no', error])
        assert.equal(isBusy(error), false)
      }
    })
  }
})

suite('leaves unknown whether a commit took place after', () => {
  for (const [errcode, code] of [
    [7, 'SQLITE_NOMEM'],
    [1034, 'SQLITE_IOERR_FSYNC'],
    [778, 'SQLITE_IOERR_WRITE'],
    [13, 'SQLITE_FULL'],
    [14, 'SQLITE_CANTOPEN'],
  ] as const) {
    test(code, () => {
      for (const error of errorsWith(errcode, code)) {
        const explained = explainCommit(error, 'plants.db') as StoreUnavailableError
        assert.equal(explained.isOutcomeUnknown, true)
        assert.deepEqual([explained.message, explained.cause], ['SQLite database plants.db: no', error])
        assert.equal(explain(explained, 'plants.db'), explained)
      }
    })
  }
})

suite('knows what became of a commit after', () => {
  for (const [errcode, code] of [
    [5, 'SQLITE_BUSY'],
    [11, 'SQLITE_CORRUPT'],
  ] as const) {
    test(code, () => {
      for (const error of errorsWith(errcode, code)) assert.equal(explainCommit(error, 'plants.db'), error)
    })
  }
})

test('at the start, waiting helps with a lock or a full disk, and not if there is no file', () => {
  const names = [
    ...errorsWith(5, 'SQLITE_BUSY'),
    ...errorsWith(13, 'SQLITE_FULL'),
    ...errorsWith(14, 'SQLITE_CANTOPEN'),
  ].map((error) => explainOpening(error, 'plants.db').name)
  const unavailable = 'StoreUnavailableError'
  assert.deepEqual(names, [unavailable, unavailable, unavailable, unavailable, 'Error', 'Error'])
})
