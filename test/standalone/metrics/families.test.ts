import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { Counter, formatFamilies, Histogram, SECONDS, single } from '../../../src/standalone/metrics/families.ts'

suite('in the text format of Prometheus', () => {
  test('metrics come one after another, each with its help and its type', () => {
    const families = [single('gauge', 'a', 'Is a.', () => 1.5), single('counter', 'b', 'Counts b.', () => 2)]
    assert.equal(
      formatFamilies(families),
      '# HELP a Is a.\n# TYPE a gauge\na 1.5\n# HELP b Counts b.\n# TYPE b counter\nb 2\n',
    )
  })

  test('a counter has a series for each set of labels', () => {
    const counter = new Counter('c', 'Counts c.')
    for (const status of ['400', '408', '400']) counter.add({ method: 'GET', status })
    assert.equal(
      formatFamilies([counter]),
      '# HELP c Counts c.\n# TYPE c counter\nc{method="GET",status="400"} 2\nc{method="GET",status="408"} 1\n',
    )
  })

  test('a bucket of a histogram counts the values up to its bound, and all of the buckets before', () => {
    const histogram = new Histogram('h', 'Counts h.', [1, 10])
    const [first, second] = [histogram.addSeries({ of: 'x' }), histogram.addSeries({})]
    for (const value of [0.5, 1, 1.5, 10, 10.5]) first.observe(value)
    second.observe(2)
    assert.equal(
      formatFamilies([histogram]),
      '# HELP h Counts h.\n# TYPE h histogram\n' +
        'h_bucket{of="x",le="1"} 2\nh_bucket{of="x",le="10"} 4\nh_bucket{of="x",le="+Inf"} 5\n' +
        'h_sum{of="x"} 23.5\nh_count{of="x"} 5\n' +
        'h_bucket{le="1"} 0\nh_bucket{le="10"} 1\nh_bucket{le="+Inf"} 1\nh_sum 2\nh_count 1\n',
    )
  })
})

test('the bounds for durations ascend from milliseconds to seconds', () => {
  assert.deepEqual([SECONDS[0], SECONDS.at(-1)], [0.005, 10])
  assert.deepEqual(
    SECONDS,
    [...SECONDS].sort((a, b) => a - b),
  )
})
