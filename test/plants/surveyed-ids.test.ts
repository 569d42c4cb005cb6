import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { MAX_INT64, MIN_INT64 } from '../../src/plants/int64.ts'
import { SurveyedIds } from '../../src/plants/surveyed-ids.ts'

function surveyed(ids: Iterable<bigint>): SurveyedIds {
  const list = new SurveyedIds()
  for (const id of ids) list.add(id)
  return list
}

suite('keeps ids', () => {
  const rows: readonly (readonly bigint[])[] = [
    [],
    [0n],
    [-1n],
    [MIN_INT64],
    [MAX_INT64],
    [MIN_INT64, MAX_INT64],
    [MIN_INT64, MIN_INT64 + 1n, -129n, -1n, 0n, 127n, 255n, 2n ** 53n + 1n, MAX_INT64 - 1n, MAX_INT64],
  ]
  for (const ids of rows) {
    test(`[${ids.join(', ')}]`, () => {
      const list = surveyed(ids)
      assert.deepEqual([...list], ids)
      assert.equal(list.last, ids.at(-1))
    })
  }
})

suite('keeps within 1 MiB', () => {
  for (const [name, distance, least] of [
    ['a million ids in a row', 1n, 1_000_000],
    ['131,000 ids that are far apart', 2n ** 46n, 131_000],
  ] as const) {
    test(name, () => {
      const list = new SurveyedIds()
      let count = 0
      for (let id = MIN_INT64; !list.isFull; id += distance, count++) list.add(id)
      assert.ok(count >= least, `${count} ids`)
      assert.equal([...list].length, count)
    })
  }
})
