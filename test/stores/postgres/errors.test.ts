import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { runInNewContext } from 'node:vm'
import * as failure from '../../../src/stores/postgres/errors.ts'

const {
  breaksConnection,
  NoResponseError,
  UnconfirmedCommitError,
  UnreadableResponseError,
  UnsuitableDatabaseError,
  ...PREDICATES
} = failure

/** Returns the names of the predicates that match an error. */
function getMatchingPredicates(error: unknown): string[] {
  return Object.entries(PREDICATES).flatMap(([name, ask]) => (ask(error) ? [name] : []))
}

function createErrorWithCode(code: unknown, message = 'timeout', fields: object = {}): Error {
  return Object.assign(new Error(message), { code, ...fields })
}

suite('an error is classified by its SQLSTATE', () => {
  // The message contains "timeout", which must not matter if the error has a SQLSTATE.
  for (const [state, meaning, ...expected] of [
    ['08000', 'a broken connection', 'isTransient', 'isOutcomeUnknown', 'breaksConnection'],
    ['08001', 'an unreachable server behind a foreign table', 'isTransient'],
    ['08P01', 'any error of a pooler', 'isTransient', 'isOutcomeUnknown', 'breaksConnection'],
    ['22008', 'a date out of range', 'isRejectedValue', 'isSinglePlantError'],
    ['22021', 'a character outside of the encoding', 'isRejectedValue', 'isSinglePlantError'],
    ['23514', 'a constraint violation', 'isRejectedValue', 'isSinglePlantError'],
    ['25006', 'a read-only server', 'isTransient', 'breaksConnection'],
    ['25P02', 'an aborted transaction', 'isTransient', 'breaksConnection'],
    ['25P03', 'idle_in_transaction_session_timeout', 'isTransient', 'isOutcomeUnknown', 'breaksConnection'],
    ['25P04', 'transaction_timeout', 'isTransient', 'isOutcomeUnknown', 'breaksConnection'],
    ['26000', 'an unknown prepared statement', 'isPreparedStatementError'],
    ['40001', 'a serialization failure', 'isTransient', 'isConflict'],
    ['40003', 'an unknown commit status', 'isTransient', 'isOutcomeUnknown', 'breaksConnection'],
    ['40P01', 'a deadlock', 'isTransient', 'isConflict'],
    ['42501', 'a missing privilege'],
    ['42P01', 'a missing table'],
    ['42P05', 'a duplicate prepared statement', 'isPreparedStatementError'],
    ['53100', 'a full disk', 'isTransient'],
    ['53300', 'too many connections', 'isTransient'],
    ['44000', 'a violated check option of a view'],
    ['54000', 'an exceeded server limit'],
    ['55000', 'an object in the wrong state'],
    ['55006', 'an object in use', 'isTransient'],
    ['55P03', 'lock_timeout', 'isTransient'],
    ['57014', 'a canceled statement', 'isTransient', 'isCanceled'],
    ['57P01', 'a server that is shutting down', 'isTransient', 'isOutcomeUnknown', 'breaksConnection'],
    ['57P03', 'a server that is starting up', 'isTransient', 'breaksConnection'],
    ['58000', 'an operating system error', 'isTransient'],
    ['58030', 'an I/O error', 'isTransient', 'isOutcomeUnknown'],
    ['72000', 'a snapshot that is too old', 'isTransient'],
    ['F0000', 'an invalid configuration file'],
    ['XX000', 'an internal error of the server'],
    ['P0001', 'an exception raised by a function'],
    ['HV000', 'an error of a foreign table'],
  ] as const) {
    test(`${state}, ${meaning}`, () => {
      const error = createErrorWithCode(state)
      const broken = breaksConnection(error) ? ['breaksConnection'] : []
      assert.deepEqual(new Set([...getMatchingPredicates(error), ...broken]), new Set(['isServerError', ...expected]))
    })
  }
})

test('errors from another realm are classified like errors from this realm', () => {
  const [...errors] = runInNewContext(`[
    Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED' }),
    Object.assign(new Error('the server stops'), { code: '57P01' }),
    new TypeError('pool.options is undefined'),
  ]`) as unknown[]
  assert.deepEqual(errors.map(failure.isTransient), [true, true, false])
  assert.deepEqual(errors.map(failure.isServerError), [false, true, false])
  assert.deepEqual(errors.map(failure.isProgrammingError), [false, false, true])
})

suite('an error with an ambiguous SQLSTATE is classified by its routine or severity', () => {
  const ENDED = ['isTransient', 'isOutcomeUnknown', 'breaksConnection']
  for (const [name, code, fields, ...expected] of [
    ['transaction IDs exhausted', '54000', { routine: 'GetNewTransactionId' }, 'isTransient'],
    ['multixact IDs exhausted', '54000', { routine: 'GetNewMultiXactId' }, 'isTransient'],
    [
      'a row too large for a B-tree index',
      '54000',
      { routine: '_bt_check_third_page' },
      'isRowTooLarge',
      'isRejectedValue',
      'isSinglePlantError',
    ],
    [
      'a row too large for any index',
      '54000',
      { routine: 'index_form_tuple_context' },
      'isRowTooLarge',
      'isRejectedValue',
      'isSinglePlantError',
    ],
    ['an error raised by a trigger', '54000', { routine: 'exec_stmt_raise' }],
    ['a row-level security policy', '42501', { routine: 'ExecWithCheckOptions' }, 'isSinglePlantError'],
    ['a violated check option of a view', '44000', { routine: 'ExecWithCheckOptions' }, 'isSinglePlantError'],
    ['a missing privilege', '42501', { routine: 'aclcheck_error' }],
    ['a pooler that ends the session', 'XX000', { severity: 'FATAL' }, ...ENDED],
    ['a server that crashes', 'XX000', { severity: 'PANIC' }, ...ENDED],
    ['an internal error that keeps the session open', 'XX000', { severity: 'ERROR' }],
  ] as const) {
    test(`${code}, ${name}`, () => {
      const error = createErrorWithCode(code, 'other', fields)
      const broken = breaksConnection(error) ? ['breaksConnection'] : []
      assert.deepEqual(new Set([...getMatchingPredicates(error), ...broken]), new Set(['isServerError', ...expected]))
    })
  }
})

suite('an error without a SQLSTATE is classified by its type or message', () => {
  for (const [name, error, ...expected] of [
    ['no response in time', new NoResponseError(10), 'isTransient', 'isTimeout', 'isOutcomeUnknown'],
    ['a pool timeout', new Error('timeout exceeded'), 'isTransient', 'isTimeout', 'isOutcomeUnknown'],
    ['a driver timeout', new Error('Query read time-out'), 'isTransient', 'isTimeout', 'isOutcomeUnknown'],
    ['a broken connection', new Error('Connection terminated unexpectedly'), 'isTransient', 'isOutcomeUnknown'],
    ['a broken pipe', createErrorWithCode('EPIPE', 'write EPIPE'), 'isTransient', 'isOutcomeUnknown'],
    ['a code that starts with a SQLSTATE', createErrorWithCode('0800000', 'other'), 'isTransient', 'isOutcomeUnknown'],
    ['a code that ends with a SQLSTATE', createErrorWithCode('E08000', 'other'), 'isTransient', 'isOutcomeUnknown'],
    ['a numeric code', createErrorWithCode(8000, 'other'), 'isTransient', 'isOutcomeUnknown'],
    ['a commit that the standby has not confirmed', new UnconfirmedCommitError(), 'isTransient', 'isOutcomeUnknown'],
    ['a response that cannot be parsed', new UnreadableResponseError(new Error('time-out')), 'isOutcomeUnknown'],
    ['a programming error', new TypeError('other'), 'isProgrammingError', 'isOutcomeUnknown'],
    ['a value out of range', new RangeError('other'), 'isProgrammingError', 'isOutcomeUnknown'],
    ['a database with another encoding', new UnsuitableDatabaseError('other'), 'isTransient', 'isOutcomeUnknown'],
    ['a thrown object that is not an Error', { code: '08000' }, 'isOutcomeUnknown'],
  ] as const) {
    test(name, () => assert.deepEqual(new Set(getMatchingPredicates(error)), new Set(expected)))
  }
})
