import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { parseNewPlant } from '../../src/http/new-plant.ts'

const INT64_RANGE = 'must be from -9223372036854775808 to 9223372036854775807'

suite('parseNewPlant reports the problem of the id', () => {
  for (const [literal, problem] of [
    ['9223372036854775300.5', 'must be an integer'],
    ['9007199254740993.5', 'must be an integer'],
    ['1e-400', 'must be an integer'],
    ['9223372036854775808', INT64_RANGE],
    ['-9223372036854775809', INT64_RANGE],
    ['1e400', INT64_RANGE],
    ['"1"', 'must be a number'],
  ] as const) {
    test(literal, () => {
      const message = `The plant is invalid: id ${problem}.`
      assert.throws(() => parseNewPlant(Buffer.from(`{"id":${literal},"name":"Fern"}`)), { error: 40002, message })
    })
  }
})

suite('parseNewPlant accepts an object that a parser of the host has made', () => {
  test('and ignores its unknown and undefined members', () => {
    const plant = parseNewPlant({ tag: undefined, name: 'Fern', id: 7n, extra: [1] })
    assert.deepEqual(plant, { id: 7n, name: 'Fern' })
  })

  test('unless its id is out of range', () => {
    const message = `The plant is invalid: id ${INT64_RANGE}; name must be a string.`
    assert.throws(() => parseNewPlant({ id: 2n ** 63n, name: 7 }), { error: 40002, message })
  })
})
