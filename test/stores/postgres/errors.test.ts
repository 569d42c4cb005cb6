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

/** What is true of an error. */
function getMatchingPredicates(error: unknown): string[] {
  return Object.entries(PREDICATES).flatMap(([name, ask]) => (ask(error) ? [name] : []))
}

function createErrorWithCode(code: unknown, message = 'timeout', fields: object = {}): Error {
  return Object.assign(new Error(message), { code, ...fields })
}

suite('tells by the SQLSTATE what came of a statement', () => {
  // Words as "timeout" say nothing if there is a SQLSTATE.
  for (const [state, meaning, ...expected] of [
    ['08000', 'a broken connection', 'isTransient', 'isOutcomeUnknown', 'breaksConnection'],
    ['08001', 'a server behind this one that cannot be reached', 'isTransient'],
    ['08P01', 'what a pooler says of all that goes wrong', 'isTransient', 'isOutcomeUnknown', 'breaksConnection'],
    ['22008', 'a date out of range', 'isRejectedValue', 'isSinglePlantError'],
    ['22021', 'a character that is not in the encoding', 'isRejectedValue', 'isSinglePlantError'],
    ['23514', 'a constraint', 'isRejectedValue', 'isSinglePlantError'],
    ['25006', 'a standby', 'isTransient', 'breaksConnection'],
    ['25P02', 'a transaction that has failed before', 'isTransient', 'breaksConnection'],
    ['25P03', 'idle_in_transaction_session_timeout', 'isTransient', 'isOutcomeUnknown', 'breaksConnection'],
    ['25P04', 'transaction_timeout', 'isTransient', 'isOutcomeUnknown', 'breaksConnection'],
    ['26000', 'an unknown prepared statement', 'isPreparedStatementError'],
    ['40001', 'a conflict', 'isTransient', 'isConflict'],
    ['40003', 'a commit that nobody knows of', 'isTransient', 'isOutcomeUnknown', 'breaksConnection'],
    ['40P01', 'a deadlock', 'isTransient', 'isConflict'],
    ['42501', 'a right that is missing'],
    ['42P01', 'a table that is missing'],
    ['42P05', 'a prepared statement of the same name', 'isPreparedStatementError'],
    ['53100', 'a full disk', 'isTransient'],
    ['53300', 'too many connections', 'isTransient'],
    ['44000', 'the check option of a view'],
    ['54000', 'a limit of the server'],
    ['55000', 'an object in another state'],
    ['55006', 'an object in use', 'isTransient'],
    ['55P03', 'lock_timeout', 'isTransient'],
    ['57014', 'a cancelled statement', 'isTransient', 'isCanceled'],
    ['57P01', 'a server that stops', 'isTransient', 'isOutcomeUnknown', 'breaksConnection'],
    ['57P03', 'a server that starts', 'isTransient', 'breaksConnection'],
    ['58000', 'an error of the machine', 'isTransient'],
    ['58030', 'an I/O error', 'isTransient', 'isOutcomeUnknown'],
    ['72000', 'a snapshot that is too old', 'isTransient'],
    ['F0000', 'a configuration file'],
    ['XX000', 'a defect of the server'],
    ['P0001', 'what a function raises'],
    ['HV000', 'a foreign table'],
  ] as const) {
    test(`${state}, ${meaning}`, () => {
      const error = createErrorWithCode(state)
      const broken = breaksConnection(error) ? ['breaksConnection'] : []
      assert.deepEqual(new Set([...getMatchingPredicates(error), ...broken]), new Set(['isServerError', ...expected]))
    })
  }
})

test('tells errors of another realm from faults of the code there', () => {
  const [...errors] = runInNewContext(`[
    Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED' }),
    Object.assign(new Error('the server stops'), { code: '57P01' }),
    new TypeError('pool.options is undefined'),
  ]`) as unknown[]
  assert.deepEqual(errors.map(failure.isTransient), [true, true, false])
  assert.deepEqual(errors.map(failure.isServerError), [false, true, false])
  assert.deepEqual(errors.map(failure.isProgrammingError), [false, false, true])
})

suite('uses the function of the server that reported an error', () => {
  const ENDED = ['isTransient', 'isOutcomeUnknown', 'breaksConnection']
  for (const [name, code, fields, ...expected] of [
    ['no more transaction IDs', '54000', { routine: 'GetNewTransactionId' }, 'isTransient'],
    ['no more multixact IDs', '54000', { routine: 'GetNewMultiXactId' }, 'isTransient'],
    [
      'an index',
      '54000',
      { routine: '_bt_check_third_page' },
      'isRowTooLarge',
      'isRejectedValue',
      'isSinglePlantError',
    ],
    [
      'any index',
      '54000',
      { routine: 'index_form_tuple_context' },
      'isRowTooLarge',
      'isRejectedValue',
      'isSinglePlantError',
    ],
    ['a trigger', '54000', { routine: 'exec_stmt_raise' }],
    ['a row-level security policy', '42501', { routine: 'ExecWithCheckOptions' }, 'isSinglePlantError'],
    ['the check option of a view', '44000', { routine: 'ExecWithCheckOptions' }, 'isSinglePlantError'],
    ['a missing privilege', '42501', { routine: 'aclcheck_error' }],
    ['a pooler that ends the session', 'XX000', { severity: 'FATAL' }, ...ENDED],
    ['a server that crashes', 'XX000', { severity: 'PANIC' }, ...ENDED],
    ['a defect that ends no session', 'XX000', { severity: 'ERROR' }],
  ] as const) {
    test(`${code}, ${name}`, () => {
      const error = createErrorWithCode(code, 'other', fields)
      const broken = breaksConnection(error) ? ['breaksConnection'] : []
      assert.deepEqual(new Set([...getMatchingPredicates(error), ...broken]), new Set(['isServerError', ...expected]))
    })
  }
})

suite('tells without a SQLSTATE what came of a statement', () => {
  for (const [name, error, ...expected] of [
    ['no answer in time', new NoResponseError(10), 'isTransient', 'isTimeout', 'isOutcomeUnknown'],
    ['a time-out of the pool', new Error('timeout exceeded'), 'isTransient', 'isTimeout', 'isOutcomeUnknown'],
    ['a time-out of the driver', new Error('Query read time-out'), 'isTransient', 'isTimeout', 'isOutcomeUnknown'],
    ['a broken connection', new Error('Connection terminated unexpectedly'), 'isTransient', 'isOutcomeUnknown'],
    ['a broken pipe', createErrorWithCode('EPIPE', 'write EPIPE'), 'isTransient', 'isOutcomeUnknown'],
    ['a code that is longer', createErrorWithCode('0800000', 'other'), 'isTransient', 'isOutcomeUnknown'],
    ['a code that ends so', createErrorWithCode('E08000', 'other'), 'isTransient', 'isOutcomeUnknown'],
    ['a code that is a number', createErrorWithCode(8000, 'other'), 'isTransient', 'isOutcomeUnknown'],
    ['a statement that its standby has not confirmed', new UnconfirmedCommitError(), 'isTransient', 'isOutcomeUnknown'],
    ['a response that cannot be parsed', new UnreadableResponseError(new Error('time-out')), 'isOutcomeUnknown'],
    ['an error of the code', new TypeError('other'), 'isProgrammingError', 'isOutcomeUnknown'],
    ['a value out of range', new RangeError('other'), 'isProgrammingError', 'isOutcomeUnknown'],
    ['a database of another encoding', new UnsuitableDatabaseError('other'), 'isTransient', 'isOutcomeUnknown'],
    ['what is no error', { code: '08000' }, 'isOutcomeUnknown'],
  ] as const) {
    test(name, () => assert.deepEqual(new Set(getMatchingPredicates(error)), new Set(expected)))
  }
})
