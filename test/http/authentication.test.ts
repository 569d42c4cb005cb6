import assert from 'node:assert/strict'
import type { IncomingMessage } from 'node:http'
import { suite, test } from 'node:test'
import type { HttpError } from '../../src/http/errors.ts'
import { createTokenTable, readBearerToken, toCaller } from '../../src/http/authentication.ts'

const createRequest = (...values: readonly string[]): Partial<IncomingMessage> => ({
  rawHeaders: values.flatMap((value) => ['Authorization', value]),
})

const MALFORMED = [
  ...['Bearer =', 'Bearer a=b', 'Bearer a b', 'Bearer a,b', 'Bearer\tabc', 'Bearer "abc"', 'Bearer é', 'Bearer'],
  'Bearer, Basic abc',
].map((field) => [field])
const OTHER_CREDENTIALS = [
  '',
  'Bearerabc',
  'Bearer-2 abc',
  'Basic abc',
  'Digest realm="Bearer abc"',
  'Basic Bearer abc',
]

suite('readBearerToken', () => {
  for (const [field, token] of [
    ['Bearer abc', 'abc'],
    ['bearer    abc', 'abc'],
    ['BEARER aZ09-._~+/==', 'aZ09-._~+/=='],
  ] as const) {
    test(`returns the token of ${JSON.stringify(field)}`, () =>
      assert.equal(readBearerToken(createRequest(field)), token))
  }

  for (const [error, rows] of [
    [40100, [[], ...OTHER_CREDENTIALS.map((field) => [field])]],
    [40101, [...MALFORMED, ['Bearer abc', 'Bearer abc'], ['Basic abc', 'Bearer abc']]],
  ] as const) {
    for (const fields of rows) {
      test(`returns error ${error} for the Authorization headers ${JSON.stringify(fields)}`, () =>
        assert.equal((readBearerToken(createRequest(...fields)) as HttpError).error, error))
    }
  }
})

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
  for (const [name, holder] of [
    ['is a number', 42],
    ['is null', null],
    ['is an empty object', {}],
    ['is empty', ''],
    ['contains U+0000', 'a\0'],
    ['contains a lone surrogate', '\ud800'],
    ['has an empty owner', { owner: '', access: 'read' }],
    ['has no owner', { access: 'read' }],
    ['has no access', { owner: 'ada' }],
    ['has an unknown access', { owner: 'ada', access: 'admin' }],
    ['has a third member', { owner: 'ada', access: 'read', s3cret: 1 }],
  ] as const) {
    test(`rejects a token holder that ${name}`, () => {
      const message =
        'must have an owner, a non-empty string of well-formed Unicode without U+0000, ' +
        'or an object with only an owner and an access, "read" or "write"'
      assert.throws(() => toCaller(holder, 'must have'), new TypeError(message))
    })
  }
})
