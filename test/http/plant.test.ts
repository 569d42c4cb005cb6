import assert from 'node:assert/strict'
import { test } from 'node:test'
import { encodePlant, isInt64, isValidText, parseInt64, type EncodedPlant } from '../../src/plants/plant.ts'
import { isUnavailable, StoreUnavailableError } from '../../src/plants/store.ts'

test('isInt64 accepts values from -2^63 to 2^63 - 1', () => {
  const values = [-(2n ** 63n) - 1n, -(2n ** 63n), 0n, 2n ** 63n - 1n, 2n ** 63n]
  assert.deepEqual(values.map(isInt64), [false, true, true, true, false])
})

for (const text of ['0', '-1', '9007199254740993', '9223372036854775807', '-9223372036854775808']) {
  test(`parseInt64 parses ${text}`, () => assert.equal(parseInt64(text), BigInt(text)))
}
const INVALID_IDS = ['', '-', '+1', '01', '-01', '1.0', '1e3', '0x1', ' 1', '1 ', '1\n', '1n', '1,', '--1', '٣']
for (const text of [...INVALID_IDS, '9223372036854775808', '-9223372036854775809', '10000000000000000000']) {
  test(`parseInt64 rejects ${JSON.stringify(text)}`, () => assert.equal(parseInt64(text), undefined))
}

for (const [value, expected] of [
  ['', true],
  ['a\u007f\u0080é\u07ff\u0800楓\uffff🌵\u{10ffff}', true],
  ['a\0', false],
  ['\ud83c', false],
  ['\udf35\ud83c', false],
  [1, false],
  [undefined, false],
] as const) {
  test(`isValidText ${expected ? 'accepts' : 'rejects'} ${JSON.stringify(value)}`, () =>
    assert.equal(isValidText(value), expected))
}

for (const [plant, includesId, expected] of [
  [{ id: 1n, name: 'a "fern"', tag: '' }, false, '{"name":"a \\"fern\\"","tag":""}'],
  [{ id: 1n, name: '', tag: undefined }, false, '{"name":""}'],
  [{ id: -9223372036854775808n, name: 'Ż' }, true, '{"id":-9223372036854775808,"name":"Ż"}'],
  [{ id: 7n, name: 'Fern', json: 'a member of a custom store' }, false, '{"name":"Fern"}'],
] as const) {
  test(`encodePlant returns ${expected}`, () => assert.equal(encodePlant(plant as EncodedPlant, includesId), expected))
}

for (const [member, plant] of [
  ['name', { id: 1n, name: 7 }],
  ['name', { id: 1n }],
  ['tag', { id: 1n, name: 'Fern', tag: null }],
] as const) {
  test(`encodePlant rejects ${JSON.stringify({ ...plant, id: 1 })}`, () => {
    const expected = new TypeError(`the ${member} of a plant must be a string`)
    assert.throws(() => encodePlant(plant as unknown as EncodedPlant, false), expected)
  })
}

test('a StoreUnavailableError has a name, a code, its cause and whether the outcome is unknown', () => {
  const cause = new Error('no route to host')
  const error = new StoreUnavailableError('the database is away', { cause, isOutcomeUnknown: true })
  assert.equal(String(error), 'StoreUnavailableError: the database is away')
  assert.deepEqual([error.cause, error.code, error.isOutcomeUnknown], [cause, 'PLANT_STORE_UNAVAILABLE', true])
  assert.equal(new StoreUnavailableError().isOutcomeUnknown, false)
})

test('a StoreUnavailableError of another copy of the package is recognized by its code', () => {
  assert.equal(isUnavailable(Object.assign(new Error('away'), { code: 'PLANT_STORE_UNAVAILABLE' })), true)
  for (const error of [new Error('away'), null, undefined, 'PLANT_STORE_UNAVAILABLE']) {
    assert.equal(isUnavailable(error), false)
  }
})
