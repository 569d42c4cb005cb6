import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { MAX_INT64, MIN_INT64 } from '../../src/plants/int64.ts'
import { IdSnapshot } from '../../src/plants/id-snapshot.ts'

suite('an id snapshot returns exactly the added ids', () => {
  const rows: readonly (readonly bigint[])[] = [
    [],
    [-1n],
    [MIN_INT64, MAX_INT64],
    [MIN_INT64, MIN_INT64 + 1n, -129n, -1n, 0n, 127n, 255n, 2n ** 53n + 1n, MAX_INT64 - 1n, MAX_INT64],
  ]
  for (const ids of rows) {
    test(`[${ids.join(', ')}]`, () => {
      const list = new IdSnapshot()
      for (const id of ids) list.add(id)
      assert.deepEqual([...list], ids)
      assert.equal(list.lastId, ids.at(-1))
    })
  }
})

suite('an id snapshot stores up to 1 MiB of ids', () => {
  // The first id takes 10 bytes, and ids are added as long as 10 bytes are free.
  for (const [count, distance] of [
    [1_048_558, 1n],
    [149_795, 2n ** 46n],
  ] as const) {
    test(`${count} ids with a difference of ${distance}`, () => {
      const list = new IdSnapshot()
      let added = 0
      for (let id = MIN_INT64; list.add(id); id += distance) added++
      assert.equal(added, count)
      assert.equal([...list].length, count)
    })
  }
})
