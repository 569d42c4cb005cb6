import assert from 'node:assert/strict'
import { test } from 'node:test'
import { countTextBytes, EncodedPlant, encodeRest, type NewPlant } from '../../src/plants/plant.ts'

test('encodes a plant without its id, and without the brace that would come before it', () => {
  assert.equal(encodeRest({ id: 1n, name: 'a "fern"', tag: '' }), '"name":"a \\"fern\\"","tag":""}')
})

test('leaves out a tag that is absent', () => {
  assert.equal(encodeRest({ id: 1n, name: '', tag: undefined }), '"name":""}')
})

test('a plant keeps its text through its encoding', () => {
  const plant = { id: 1n, name: 'Żółta paproć "\\\n', tag: '日本の楓 🌵' }
  const { id, name, tag } = new EncodedPlant(1n, encodeRest(plant))
  assert.deepEqual({ id, name, tag }, plant)
})

test('an encoded plant keeps its text as it is', () => {
  const rest = '"name":"F\\u0065rn"}'
  assert.equal(encodeRest(new EncodedPlant(1n, rest)), rest)
})

test('an encoded plant may have no tag', () => {
  assert.equal(new EncodedPlant(1n, '"name":"Fern"}').tag, undefined)
})

for (const plant of [
  { id: 1n, name: 7 },
  { id: 1n, name: 'Fern', tag: null },
]) {
  test(`does not encode ${JSON.stringify({ ...plant, id: 1 })}`, () => {
    const expected = new TypeError('a plant has a name or tag that is no string')
    assert.throws(() => encodeRest(plant as unknown as NewPlant), expected)
  })
}

const TEXTS = ['', 'Fern', 'é楓🌵', '"', '\\', '\n', '\u0001', '\\u0041', 'a\\', '","tag":"', '{"name":"","tag":""}']
for (const [name, tag] of TEXTS.flatMap((text) => [[text], ['Fern', text], [text, text]])) {
  test(`counts the bytes of the name and the tag in ${JSON.stringify({ name, tag })}`, () => {
    const rest = encodeRest({ id: 1n, name: name!, tag })
    assert.equal(countTextBytes(rest), Buffer.byteLength(`${name}${tag ?? ''}`))
  })
}
