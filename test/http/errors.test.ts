import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ERRORS } from '../../src/http/errors.ts'

test('each error has a unique code and a unique message', () => {
  const rows = Object.values(ERRORS)
  assert.equal(new Set(rows.map(({ error }) => error)).size, rows.length)
  assert.equal(new Set(rows.map(({ message }) => message)).size, rows.length)
  for (const { message } of rows) assert.match(message, /^[A-Z].+\.$/)
})
