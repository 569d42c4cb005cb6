import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { readBearerToken } from '../../src/http/bearer.ts'

const CREDENTIALS: readonly (readonly [authorization: readonly string[], outcome: string | number])[] = [
  [['Bearer abc'], 'abc'],
  [['bearer    abc'], 'abc'],
  [['BEARER aZ09-._~+/=='], 'aZ09-._~+/=='],
  [['Bearer ='], 40101],
  [['Bearer a=b'], 40101],
  [['Bearer a b'], 40101],
  [['Bearer a,b'], 40101],
  [['Bearer\tabc'], 40101],
  [['Bearer "abc"'], 40101],
  [['Bearer é'], 40101],
  [['Bearer'], 40101],
  [['Bearer, Basic abc'], 40101],
  [['Bearer abc', 'Bearer abc'], 40101],
  [['Basic abc', 'Bearer abc'], 40101],
  [[], 40100],
  [[''], 40100],
  [['Bearerabc'], 40100],
  [['Bearer-2 abc'], 40100],
  [['Basic abc'], 40100],
  [['Digest realm="Bearer abc"'], 40100],
  [['Basic Bearer abc'], 40100],
]

suite('reads the credentials', () => {
  for (const [authorization, outcome] of CREDENTIALS) {
    test(JSON.stringify(authorization), () => {
      if (typeof outcome === 'string') assert.equal(readBearerToken(authorization), outcome)
      else assert.throws(() => readBearerToken(authorization), { error: outcome })
    })
  }
})
