import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { parseNewPlant } from '../../src/http/new-plant.ts'
import { measureMemoryUsed } from '../support/memory-usage.ts'

const COUNT = 500
const PADDING = ' '.repeat(60_000)
const INT64_RANGE = 'must be from -9223372036854775808 to 9223372036854775807'

test('a plant with short texts does not retain a body of 60 kB (resource exhaustion)', async () => {
  const before = await measureMemoryUsed()
  const plants = Array.from({ length: COUNT }, (_, id) =>
    parseNewPlant(Buffer.from(`{"id":${id},"name":"a name of 20 letters","tag":"some tag of 20 letters"${PADDING}}`)),
  )
  const taken = ((await measureMemoryUsed()) - before) / plants.length
  assert.ok(taken < 2000, `each plant uses ${Math.round(taken)} bytes`)
})

test('parseNewPlant preserves the texts of a large body exactly', () => {
  const name = 'Żaba 🐸 a name that V8 would keep as a substring'
  const body = Buffer.from(`{"id":7,"name":${JSON.stringify(name)},"tag":"\\n"${PADDING}}`)
  assert.deepEqual(parseNewPlant(body), { id: 7n, name, tag: '\n' })
})

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
