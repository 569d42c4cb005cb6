import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parseJson } from '../../src/http/json.ts'
import { parseNewPlant } from '../../src/http/new-plant.ts'
import { measureMemoryUsed } from '../support/memory-usage.ts'

const COUNT = 500
const PADDING = ' '.repeat(60_000)

for (const [name, member] of [
  ['name', ',"name":"a name of 20 letters"'],
  ['name and tag', ',"name":"a name of 20 letters","tag":"some tag of 20 letters"'],
] as const) {
  test(`a ${name} of 20 characters does not retain a body of 60 kB (resource exhaustion)`, async () => {
    const before = await measureMemoryUsed()
    const plants = Array.from({ length: COUNT }, (_, id) => {
      const body = Buffer.from(`{"id":${id}${member}${PADDING}}`)
      return parseNewPlant(parseJson(body), body.length)
    })
    const taken = ((await measureMemoryUsed()) - before) / plants.length
    assert.ok(taken < 2000, `each plant uses ${Math.round(taken)} bytes`)
  })
}

test('parseNewPlant preserves names and tags exactly', () => {
  const text = 'Żaba 🐸 a name that V8 would keep as a substring'
  const [id, members] = [7n, `"name":${JSON.stringify(text)},"tag":"\\n"`]
  const body = Buffer.from(`{"id":7,${members}${PADDING}}`)
  assert.deepEqual(parseNewPlant(parseJson(body), body.length), { id, name: text, tag: '\n' })
})
