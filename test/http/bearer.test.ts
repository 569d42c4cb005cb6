import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import type { HttpError } from '../../src/http/errors.ts'
import { readBearerToken, type Credentials } from '../../src/http/bearer.ts'

const createCredentials = (...fields: readonly string[]): Credentials => ({
  authorization: fields.at(-1) ?? '',
  authorizationCount: fields.length,
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
      assert.equal(readBearerToken(createCredentials(field)), token))
  }

  for (const [error, rows] of [
    [40100, [[], ...OTHER_CREDENTIALS.map((field) => [field])]],
    [40101, [...MALFORMED, ['Bearer abc', 'Bearer abc'], ['Basic abc', 'Bearer abc']]],
  ] as const) {
    for (const fields of rows) {
      test(`returns error ${error} for the Authorization headers ${JSON.stringify(fields)}`, () =>
        assert.equal((readBearerToken(createCredentials(...fields)) as HttpError).error, error))
    }
  }
})
