import assert from 'node:assert/strict'
import { test } from 'node:test'
import { StoreUnavailableError } from '../../src/plants/store.ts'

test('a StoreUnavailableError is shown by its name, and keeps its cause', () => {
  const cause = new Error('no route to host')
  const error = new StoreUnavailableError('the database is away', { cause })
  assert.ok(error instanceof Error)
  assert.equal(String(error), 'StoreUnavailableError: the database is away')
  assert.equal(error.cause, cause)
  assert.deepEqual(Object.keys(error), ['isOutcomeUnknown'])
})

test('a StoreUnavailableError means that nothing was done, unless it says that this is unknown', () => {
  const errors = [{}, { isOutcomeUnknown: false }, { isOutcomeUnknown: true }].map(
    (options) => new StoreUnavailableError('away', options),
  )
  const areUnknown = [new StoreUnavailableError(), ...errors].map(({ isOutcomeUnknown }) => isOutcomeUnknown)
  assert.deepEqual(areUnknown, [false, false, false, true])
})
