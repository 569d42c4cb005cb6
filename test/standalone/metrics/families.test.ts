import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { createHistogram, formatFamilies, single } from '../../../src/standalone/metrics/families.ts'

suite('in the text format of Prometheus', () => {
  test('metrics come one after another, each with its help and its type', () => {
    const families = [single('gauge', 'a', 'Is a.', () => 1.5), single('counter', 'b', 'Counts b.', () => 2)]
    assert.equal(
      formatFamilies(families),
      '# HELP a Is a.\n# TYPE a gauge\na 1.5\n# HELP b Counts b.\n# TYPE b counter\nb 2\n',
    )
  })

  test('a bucket of a histogram counts the values up to its bound, and all of the buckets before', () => {
    const histogram = createHistogram('h', 'Counts h.', [1, 10])
    const [first, second] = [histogram.addSeries({ of: 'x' }), histogram.addSeries({})]
    for (const value of [0.5, 1, 1.5, 10, 10.5]) first(value)
    second(2)
    assert.equal(
      formatFamilies([histogram]),
      '# HELP h Counts h.\n# TYPE h histogram\n' +
        'h_bucket{of="x",le="1"} 2\nh_bucket{of="x",le="10"} 4\nh_bucket{of="x",le="+Inf"} 5\n' +
        'h_sum{of="x"} 23.5\nh_count{of="x"} 5\n' +
        'h_bucket{le="1"} 0\nh_bucket{le="10"} 1\nh_bucket{le="+Inf"} 1\nh_sum 2\nh_count 1\n',
    )
  })

  test('the bounds for durations ascend from milliseconds to seconds', () => {
    const bounds = createHistogram('h', 'Counts h.')
    bounds.addSeries({})
    const seconds = bounds.samples().map(([{ le }]) => Number(le ?? 'none'))
    assert.deepEqual([seconds[0], seconds[13], seconds.length], [0.005, 10, 17])
    assert.deepEqual(
      seconds.slice(0, 14),
      seconds.slice(0, 14).sort((a, b) => a - b),
    )
  })
})
