import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isInt64, MAX_INT64, MIN_INT64, parseInt64 } from '../../src/plants/int64.ts'
import { countTextBytes, decodePlant, EncodedPlant, encodeFields, type NewPlant } from '../../src/plants/plant.ts'
import { StoreUnavailableError } from '../../src/plants/store.ts'
import { decodeUtf8, encodeUtf8, isValidText } from '../../src/plants/text.ts'

test('isInt64 accepts values from -2^63 to 2^63 - 1', () => {
  assert.deepEqual([MIN_INT64, MAX_INT64], [-9223372036854775808n, 9223372036854775807n])
  const areInt64 = [MIN_INT64 - 1n, MIN_INT64, 0n, MAX_INT64, MAX_INT64 + 1n].map(isInt64)
  assert.deepEqual(areInt64, [false, true, true, true, false])
})

const VALID_IDS = ['0', '7', '-1', '42', '9007199254740993', '1000000000000000000']
for (const text of [...VALID_IDS, '9223372036854775807', '-9223372036854775808']) {
  test(`parseInt64 parses ${text}`, () => assert.equal(parseInt64(text), BigInt(text)))
}

const INVALID_IDS = ['', '-', '+1', '01', '-01', '1.0', '1e3', '0x1', ' 1', '1 ', '1\n', '1n', '1,', '--1', '٣']
for (const text of [...INVALID_IDS, '9223372036854775808', '-9223372036854775809', '10000000000000000000']) {
  test(`parseInt64 rejects ${JSON.stringify(text)}`, () => assert.equal(parseInt64(text), undefined))
}

const EVERY_UTF8_LENGTH = 'a\u007f\u0080é\u07ff\u0800楓\uffff🌵\u{10ffff}'

for (const text of [EVERY_UTF8_LENGTH, '{"name":"Fern"}']) {
  test(`decodeUtf8 reverses encodeUtf8, which returns one character per byte, for ${text}`, () => {
    assert.deepEqual(Buffer.from(encodeUtf8(text), 'latin1'), Buffer.from(text))
    assert.equal(decodeUtf8(encodeUtf8(text)), text)
  })
}

for (const [value, expected] of [
  ['', true],
  [EVERY_UTF8_LENGTH, true],
  ['a\0', false],
  ['\ud83c', false],
  ['\udf35\ud83c', false],
  [1, false],
  [undefined, false],
] as const) {
  test(`isValidText ${expected ? 'accepts' : 'rejects'} ${JSON.stringify(value)}`, () =>
    assert.equal(isValidText(value), expected))
}

test('encodeFields returns name and tag, followed by the separator and the opening brace of the next plant', () => {
  assert.equal(encodeFields({ id: 1n, name: 'a "fern"', tag: '' }), '"name":"a \\"fern\\"","tag":""},{')
  assert.equal(encodeFields({ id: 1n, name: '', tag: undefined }), '"name":""},{')
})

test('decodePlant returns the plant that encodeFields encoded', () => {
  const plant = { id: 1n, name: 'Żółta paproć "\\\n', tag: '日本の楓 🌵' }
  assert.deepEqual(decodePlant(new EncodedPlant(1n, encodeFields(plant))), plant)
})

test('encodeFields returns the JSON of an encoded plant unchanged', () => {
  const rest = '"name":"F\\u0065rn"},{'
  const plant = new EncodedPlant(1n, rest)
  assert.equal(encodeFields(plant), rest)
  assert.deepEqual(decodePlant(plant), { id: 1n, name: 'Fern' })
})

for (const plant of [
  { id: 1n, name: 7 },
  { id: 1n, name: 'Fern', tag: null },
]) {
  test(`encodeFields rejects ${JSON.stringify({ ...plant, id: 1 })}`, () => {
    const expected = new TypeError('the name and tag of a plant must be strings')
    assert.throws(() => encodeFields(plant as unknown as NewPlant), expected)
  })
}

const TEXTS = ['', 'Fern', 'é楓🌵', '"', '\\', '\n', '\u0001', '\\u0041', 'a\\', '","tag":"', '{"name":"","tag":""}']
for (const [name, tag] of TEXTS.flatMap((text) => [[text], ['Fern', text], [text, text]])) {
  test(`countTextBytes counts the bytes of the name and the tag in ${JSON.stringify({ name, tag })}`, () => {
    const rest = encodeFields({ id: 1n, name: name!, tag })
    assert.equal(countTextBytes(rest), Buffer.byteLength(`${name}${tag ?? ''}`))
  })
}

test('a StoreUnavailableError has its own name and the given cause', () => {
  const cause = new Error('no route to host')
  const error = new StoreUnavailableError('the database is away', { cause })
  assert.ok(error instanceof Error)
  assert.equal(String(error), 'StoreUnavailableError: the database is away')
  assert.equal(error.cause, cause)
  assert.deepEqual(Object.keys(error), ['isOutcomeUnknown'])
})

test('isOutcomeUnknown in a StoreUnavailableError defaults to false', () => {
  const errors = [{}, { isOutcomeUnknown: false }, { isOutcomeUnknown: true }].map(
    (options) => new StoreUnavailableError('away', options),
  )
  const areUnknown = [new StoreUnavailableError(), ...errors].map(({ isOutcomeUnknown }) => isOutcomeUnknown)
  assert.deepEqual(areUnknown, [false, false, false, true])
})
