import assert from 'node:assert/strict'
import { test } from 'node:test'
import { everyCharacter } from '../../src/conformance/awkward-values.ts'
import { isText } from '../../src/plants/text.ts'

test('every character stands once in texts of at most 64 KiB', () => {
  const texts = everyCharacter()
  assert.ok(texts.every((text) => isText(text) && Buffer.byteLength(text) <= 65_536))
  const characters = Array.from(texts.join(''), (character) => character.codePointAt(0)!)
  assert.ok(characters.every((character, i) => i === 0 || character > characters[i - 1]!))
  assert.equal(characters.length, 0x110000 - 1 - 0x800)
})
