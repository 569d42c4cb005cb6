import assert from 'node:assert/strict'
import { test } from 'node:test'
import { measureEventLoop } from '../../../src/standalone/metrics/process.ts'
import { formatFamilies } from '../../../src/standalone/metrics/families.ts'
import { until } from '../../support/until.ts'

test('what blocks the event loop is found in the delay of its timers', async () => {
  const startedAt = performance.now()
  const family = measureEventLoop()
  const text = (): string => formatFamilies([family])
  for (const end = performance.now() + 700; performance.now() < end;);
  await until(() => text().includes('_count 1\n'))
  const mostSeconds = (performance.now() - startedAt - 100) / 1000
  assert.match(text(), /^nodejs_eventloop_delay_seconds_bucket{le="0.5"} 0$/m)
  const seconds = Number(/^nodejs_eventloop_delay_seconds_sum (\S+)$/m.exec(text())![1])
  assert.ok(0.59 < seconds && seconds <= mostSeconds, `${seconds} s of ${mostSeconds} s`)
})

test('one timer after another is measured', { timeout: 30_000 }, async () => {
  const family = measureEventLoop()
  await until(() => formatFamilies([family]).includes('_count 3\n'))
})
