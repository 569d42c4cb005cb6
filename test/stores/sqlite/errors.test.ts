import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { StoreUnavailableError } from '../../../src/plants/store.ts'
import { explain, isBusy } from '../../../src/stores/sqlite/errors.ts'

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
