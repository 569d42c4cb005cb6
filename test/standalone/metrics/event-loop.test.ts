import assert from 'node:assert/strict'
import { test } from 'node:test'
import { measureEventLoop } from '../../../src/standalone/metrics/event-loop.ts'
import { formatFamilies } from '../../../src/standalone/metrics/families.ts'
import { until } from '../../support/until.ts'

test('what blocks the event loop is found in the delay of its timers', async () => {
  const family = measureEventLoop()
  const text = (): string => formatFamilies([family])
  for (const end = performance.now() + 700; performance.now() < end;);
  await until(() => text().includes('_count 1\n'))
  assert.match(text(), /^nodejs_eventloop_delay_seconds_bucket{le="0.5"} 0$/m)
  assert.match(text(), /^nodejs_eventloop_delay_seconds_sum 0\.[6-9]\d*$/m)
})
