import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  AWKWARD_IDS,
  AWKWARD_OWNERS,
  AWKWARD_TEXTS,
  everyCharacter,
  LONG_TEXTS,
} from '../../src/conformance/awkward-values.ts'
import { isInt64, MAX_INT64, MIN_INT64 } from '../../src/plants/int64.ts'
import { isText } from '../../src/plants/text.ts'

test('the awkward ids ascend from the lowest int64 to the highest', () => {
  assert.ok(AWKWARD_IDS.every((id, i) => isInt64(id) && (i === 0 || id > AWKWARD_IDS[i - 1]!)))
  assert.deepEqual([AWKWARD_IDS[0], AWKWARD_IDS.at(-1)], [MIN_INT64, MAX_INT64])
})

test('the awkward ids are on both sides of where narrower numbers end', () => {
  for (const bound of [2n ** 31n - 1n, 2n ** 32n - 1n, 2n ** 53n, -(2n ** 31n) - 1n, -(2n ** 53n) - 1n]) {
    assert.ok(AWKWARD_IDS.includes(bound) && AWKWARD_IDS.includes(bound + 1n), `${bound}`)
  }
})

test('the awkward texts are texts, each once, and the empty one is among them', () => {
  assert.ok(AWKWARD_TEXTS.every(isText))
  assert.equal(new Set(AWKWARD_TEXTS).size, AWKWARD_TEXTS.length)
  assert.ok(AWKWARD_TEXTS.includes(''))
})

test('the awkward owners are owners, each once', () => {
  assert.ok(AWKWARD_OWNERS.every((owner) => isText(owner) && owner !== ''))
  assert.equal(new Set(AWKWARD_OWNERS).size, AWKWARD_OWNERS.length)
})

test('the long texts are of 60,000 bytes, in characters of one byte, of three and of four', () => {
  assert.deepEqual(
    LONG_TEXTS.map((text) => [Buffer.byteLength(text), Buffer.byteLength(String.fromCodePoint(text.codePointAt(0)!))]),
    [
      [60_000, 1],
      [60_000, 1],
      [60_000, 3],
      [60_000, 4],
    ],
  )
})

test('every character stands once in texts of at most 64 KiB', () => {
  const texts = everyCharacter()
  assert.ok(texts.every((text) => isText(text) && Buffer.byteLength(text) <= 65_536))
  const characters = Array.from(texts.join(''), (character) => character.codePointAt(0)!)
  assert.ok(characters.every((character, i) => i === 0 || character > characters[i - 1]!))
  assert.equal(characters.length, 0x110000 - 1 - 0x800)
})
