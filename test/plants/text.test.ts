import assert from 'node:assert/strict'
import { test } from 'node:test'
import { decodeUtf8, encodeUtf8, isText } from '../../src/plants/text.ts'

const EVERY_LENGTH = 'a\u007f\u0080é\u07ff\u0800楓\uffff🌵\u{10ffff}'

test('writes one character for each byte', () => {
  assert.deepEqual(Buffer.from(encodeUtf8(EVERY_LENGTH), 'latin1'), Buffer.from(EVERY_LENGTH))
})

test('leaves ASCII as it is', () => {
  assert.equal(encodeUtf8('{"name":"Fern"}'), '{"name":"Fern"}')
})

test('reads what was written', () => assert.equal(decodeUtf8(encodeUtf8(EVERY_LENGTH)), EVERY_LENGTH))

for (const [value, expected] of [
  ['', true],
  [EVERY_LENGTH, true],
  ['a\0', false],
  ['\ud83c', false],
  ['\udf35\ud83c', false],
  [1, false],
  [undefined, false],
] as const) {
  test(`${expected ? 'takes' : 'refuses'} ${JSON.stringify(value)}`, () => assert.equal(isText(value), expected))
}
