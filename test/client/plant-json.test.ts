import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import fc from 'fast-check'
import { encodePlant, isSamePlant, parsePlants, toExactId } from '../../src/client/plant-json.ts'
import { PLANT_TEXTS, TEXT_NAMES, type NewPlant } from '../../src/plants/plant.ts'

type Texts = Record<(typeof TEXT_NAMES)[number], fc.Arbitrary<string>>

const id = fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n })
/** Strings that look like ids, members and escapes. */
const text = fc.oneof(
  fc.string({ unit: 'grapheme' }),
  fc
    .array(fc.constantFrom('{"id":1', '"id":2,', '"id"', '\\', '"', ':3}', ' ', '\\u0022id\\u0022:4'), { maxLength: 6 })
    .map((parts) => parts.join('')),
)
const requiredKeys: (keyof NewPlant)[] = ['id', ...TEXT_NAMES.filter((name) => PLANT_TEXTS[name].isRequired)]
const plant = fc.record(
  { id, ...(Object.fromEntries(TEXT_NAMES.map((name) => [name, text])) as Texts) },
  { requiredKeys, noNullPrototype: true },
)
const plants = fc
  .uniqueArray(plant as fc.Arbitrary<NewPlant>, { selector: (plant) => plant.id })
  .map((list) => list.sort((a, b) => (a.id < b.id ? -1 : 1)))

suite('a list', () => {
  test('preserves every id, name and tag when it is encoded and parsed', () => {
    fc.assert(
      fc.property(plants, (list) => {
        assert.deepEqual(parsePlants(`[${list.map((plant) => encodePlant(plant.id, plant)).join()}]`), list)
      }),
    )
  })

  test('can contain members in any order, whitespace, and unknown members', () => {
    const list = '[ { "name" : "Fern", "pot": { "size": 3 }, "id" : 9007199254740993 } ]'
    assert.deepEqual(parsePlants(list), [{ id: 9007199254740993n, name: 'Fern' }])
  })

  for (const [what, list] of [
    ['an object', '{"id":1,"name":"Fern"}'],
    ['null', 'null'],
    ['a plant that is null', '[null]'],
    ['a plant without an id', '[{"name":"Fern"}]'],
    ['a plant without a name', '[{"id":1}]'],
    ['a name that is not a string', '[{"id":1,"name":1}]'],
    ['a tag that is not a string', '[{"id":1,"name":"Fern","tag":null}]'],
    ['an id that is a string', '[{"id":"1","name":"Fern"}]'],
    ['an id with an escaped name', '[{"\\u0069d":0,"name":"Fern"}]'],
    ['an id with a fraction', '[{"id":1.5,"name":"Fern"}]'],
    ['an id with an exponent', '[{"id":1e3,"name":"Fern"}]'],
    ['an id with a leading zero', '[{"id":01,"name":"Fern"}]'],
    ['an id of 20 digits', '[{"id":10000000000000000000,"name":"Fern"}]'],
    ['two ids', '[{"id":1,"id":2,"name":"Fern"}]'],
    ['a nested id', '[{"id":1,"name":"Fern","pot":{"id":2}}]'],
    ['a repeated id', '[{"id":1,"name":"Fern"},{"id":1,"name":"Moss"}]'],
    ['ids in descending order', '[{"id":2,"name":"Fern"},{"id":1,"name":"Moss"}]'],
    ['a truncated list', '[{"id":1,"name":"Fern"}'],
    ['HTML', '<html>'],
  ] as const) {
    test(`is rejected if it is or contains ${what}`, () => {
      let parsed: unknown
      try {
        parsed = parsePlants(list)
      } catch (error) {
        assert.ok(error instanceof SyntaxError)
      }
      assert.equal(parsed, undefined)
    })
  }
})

test('two plants are the same only if each of their texts is', () => {
  const texts = Object.fromEntries(TEXT_NAMES.map((name) => [name, name])) as unknown as NewPlant
  assert.equal(isSamePlant(texts, { ...texts }), true)
  for (const name of TEXT_NAMES) assert.equal(isSamePlant(texts, { ...texts, [name]: 'other' }), false, name)
})

test('an id argument can be a bigint or a safe integer', () => {
  for (const value of [0, -0, 1, Number.MAX_SAFE_INTEGER, Number.MIN_SAFE_INTEGER, 2n ** 63n - 1n]) {
    assert.equal(toExactId(value), BigInt(value))
  }
  for (const value of [2 ** 53, -(2 ** 53), 1.5, NaN, Infinity, '1', '', true, null, undefined, Symbol('1')]) {
    assert.throws(() => toExactId(value as number), RangeError, String(value))
  }
})
