import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { createTokenTable } from '../../src/http/caller.ts'

suite('a table of tokens', () => {
  const find = createTokenTable([
    ['secret', 'ada'],
    ['other', { owner: 'grace', access: 'write' }],
    ['reader', { owner: 'ada', access: 'read' }],
  ])

  test('finds the caller of each token', () => {
    assert.deepEqual(['secret', 'other', 'reader'].map(find), [
      { owner: 'ada', access: 'write' },
      { owner: 'grace', access: 'write' },
      { owner: 'ada', access: 'read' },
    ])
  })

  for (const token of ['', 'secre', 'secrets', 'Secret', '__proto__', 'constructor']) {
    test(`refuses "${token}"`, () => assert.equal(find(token), undefined))
  }
})
