import assert from 'node:assert/strict'
import { test } from 'node:test'
import { refusal } from '../../src/http/response.ts'

test('a refusal is made of its row in the table of errors, once', () => {
  const body = '{"error":40401,"message":"You have no plant with this id."}'
  assert.deepEqual(refusal('noPlant'), { status: 404, headers: [], body, error: 40401 })
  assert.equal(refusal('noPlant'), refusal('noPlant'))
})
