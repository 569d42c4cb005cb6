import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isInt64, MAX_INT64, MIN_INT64, parseInt64 } from '../../src/plants/int64.ts'

test('an int64 goes from -2^63 to 2^63 - 1', () => {
  assert.deepEqual([MIN_INT64, MAX_INT64], [-9223372036854775808n, 9223372036854775807n])
  const areInt64 = [MIN_INT64 - 1n, MIN_INT64, 0n, MAX_INT64, MAX_INT64 + 1n].map(isInt64)
  assert.deepEqual(areInt64, [false, true, true, true, false])
})

for (const text of ['0', '7', '-1', '42', '1000000000000000000', '9223372036854775807', '-9223372036854775808']) {
  test(`reads ${text}`, () => assert.equal(parseInt64(text), BigInt(text)))
}

const NO_IDS = ['', '-', '+1', '01', '-01', '1.0', '1e3', '0x1', ' 1', '1 ', '1\n', '1n', '1,', '--1', '٣']
for (const text of [...NO_IDS, '9223372036854775808', '-9223372036854775809', '10000000000000000000']) {
  test(`does not read ${JSON.stringify(text)}`, () => assert.equal(parseInt64(text), undefined))
}
