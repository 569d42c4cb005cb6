import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createHistogram, formatFamilies, single } from '../../../src/standalone/metrics/families.ts'

test('a bucket of a histogram counts the values up to its bound, and all of the buckets before', () => {
  const histogram = createHistogram('h', 'Counts h.', [1, 10])
  const [first, second] = [histogram.addSeries({ of: 'x' }), histogram.addSeries({})]
  for (const value of [0.5, 1, 1.5, 10, 10.5]) first(value)
  second(2)
  assert.equal(
    formatFamilies([single('gauge', 'a', 'Is a.', () => 1.5), histogram]),
    '# HELP a Is a.\n# TYPE a gauge\na 1.5\n# HELP h Counts h.\n# TYPE h histogram\n' +
      'h_bucket{of="x",le="1"} 2\nh_bucket{of="x",le="10"} 4\nh_bucket{of="x",le="+Inf"} 5\n' +
      'h_sum{of="x"} 23.5\nh_count{of="x"} 5\n' +
      'h_bucket{le="1"} 0\nh_bucket{le="10"} 1\nh_bucket{le="+Inf"} 1\nh_sum 2\nh_count 1\n',
  )
})
