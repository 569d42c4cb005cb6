import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { createTokenTable, toCaller } from '../../src/http/caller.ts'
import { withPollutedPrototype } from '../support/prototype-pollution.ts'

suite('a token table', () => {
  const find = createTokenTable([
    ['secret', 'ada'],
    ['other', { owner: 'grace', access: 'write' }],
    ['reader', { owner: 'ada', access: 'read' }],
  ])

  test('returns the caller for each token', () => {
    assert.deepEqual(['secret', 'other', 'reader'].map(find), [
      { owner: 'ada', access: 'write' },
      { owner: 'grace', access: 'write' },
      { owner: 'ada', access: 'read' },
    ])
  })

  for (const token of ['', 'secre', 'secrets', 'Secret', '__proto__', 'constructor']) {
    test(`returns undefined for "${token}"`, () => assert.equal(find(token), undefined))
  }
})

suite('toCaller', () => {
  const hidden = Object.defineProperty({ owner: 'ada', access: 'read' }, 'scope', { value: 'write' })
  const inherited = Object.create({ owner: 'ada', access: 'write' }) as object

  for (const [name, holder, rule] of [
    ['inherits both properties', inherited, 'an owner: a string, not undefined'],
    ['inherits its access', Object.assign(Object.create({ access: 'write' }) as object, { owner: 'ada' }), 'an access'],
    ['has a third property that is not enumerable', hidden, 'an owner and an access, and nothing else'],
    [
      'has a third property whose key is a symbol',
      { owner: 'ada', access: 'read', [Symbol('scope')]: 1 },
      'an owner and an access',
    ],
  ] as const) {
    test(`rejects a token holder that ${name}`, () => {
      assert.throws(
        () => toCaller(holder, 'must have'),
        ({ message }: TypeError) => message.startsWith(`must have ${rule}`),
      )
    })
  }

  test('a token holder without an access level is rejected even if `Object.prototype.access` is set (prototype pollution)', () => {
    assert.throws(
      () => withPollutedPrototype({ access: 'write' }, () => toCaller({ owner: 'ada' }, 'must have')),
      new TypeError('must have an access of "read" or "write", not undefined'),
    )
  })

  test('a token holder that is a string has write access even if `Object.prototype.access` is "read" (prototype pollution)', () => {
    const caller = withPollutedPrototype({ access: 'read', owner: 'eve' }, () => toCaller('ada', 'must have'))
    assert.deepEqual(caller, { owner: 'ada', access: 'write' })
  })
})
