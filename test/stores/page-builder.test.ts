import assert from 'node:assert/strict'
import { test } from 'node:test'
import { PageBuilder } from '../../src/stores/page-builder.ts'

const FERN = '{"name":"Fern"}'

for (const [maxBytes, takesMore] of [
  [4, false],
  [5, true],
  [FERN.length, true],
] as const) {
  test(`a page of ${maxBytes} bytes takes ${takesMore ? 'more' : 'nothing'} after one name of 4`, () => {
    assert.equal(new PageBuilder({ limit: 10, maxBytes }).add(1n, FERN), takesMore)
  })
}
