import assert from 'node:assert/strict'
import { readdirSync, realpathSync } from 'node:fs'
import { suite, test } from 'node:test'
import { isDeepStrictEqual } from 'node:util'
import { createProcessMetrics, createDescriptorMetrics } from '../../../src/standalone/metrics/process-metrics.ts'
import { createHistogram, formatFamilies, createSingleMetric } from '../../../src/standalone/metrics/metric-families.ts'
import { blockEventLoop } from '../../support/event-loop.ts'
import { scrapeMetrics, startWithMetrics } from '../../support/program/metrics.ts'
import { Program } from '../../support/program/program.ts'
import { RawConnection } from '../../support/wire/raw-connection.ts'
import { waitUntil } from '../../support/wait-until.ts'

test('the event-loop delay metric measures how long the event loop was blocked', async () => {
  const startedAt = performance.now()
  const families = createProcessMetrics()
  const text = (): string => formatFamilies(families)
  blockEventLoop(700)
  await waitUntil(() => text().includes('_count 1\n'))
  const mostSeconds = (performance.now() - startedAt - 100) / 1000
  assert.match(text(), /^nodejs_eventloop_delay_seconds_bucket{le="0.5"} 0$/m)
  const seconds = Number(/^nodejs_eventloop_delay_seconds_sum (\S+)$/m.exec(text())![1])
  assert.ok(0.59 < seconds && seconds <= mostSeconds, `${seconds} s of ${mostSeconds} s`)
  await waitUntil(() => text().includes('_count 3\n'))
})

suite('the file descriptor metrics', () => {
  const notLinux = process.platform !== 'linux' && 'only Linux exposes file descriptors'
  test(
    'the file descriptor metrics are updated even if all file descriptors are in use',
    { skip: notLinux },
    async (t) => {
      const { program, admin } = await startWithMetrics(t, {}, { prelude: 'ulimit -n 100' })
      const scraper = await RawConnection.open(Number(new URL(admin).port))
      async function descriptors(): Promise<number[]> {
        const [scraped] = await scraper.send('GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n').readResponses(1)
        return [...scraped!.body.matchAll(/^process_(?:open|max)_fds (\d+)$/gm)].map(([, count]) => Number(count))
      }
      const isTold = async (open: number): Promise<boolean> => isDeepStrictEqual(await descriptors(), [open, 100])
      await waitUntil(() => isTold(readdirSync(`/proc/${program.child.pid}/fd`).length))
      const connections: RawConnection[] = []
      while (connections.length < 100) connections.push(await program.connect())
      await waitUntil(() => isTold(100))
      for (const { socket } of connections) socket.end()
      await waitUntil(() => isTold(readdirSync(`/proc/${program.child.pid}/fd`).length))
      assert.equal((await program.fetch('/livez')).status, 200)
    },
  )

  test('the file descriptor metrics are omitted if the system does not expose file descriptors', () => {
    assert.deepEqual(createDescriptorMetrics('/nowhere'), [])
  })

  // From its sources, the standalone server compiles the web UI in a child process.
  const FLAGS = ['--permission', '--allow-net', '--allow-child-process'].filter((flag) =>
    process.allowedNodeEnvironmentFlags.has(flag),
  )
  const skip = !FLAGS.includes('--permission') && 'needs Node 22.13 or later'

  test(
    'the file descriptor metrics are omitted if Node lacks permission to list file descriptors',
    { skip },
    async (t) => {
      const modules = realpathSync('node_modules')
      const allowed = [`read=${process.cwd()}`, `read=${modules}`, `write=${modules}`].map(
        (path) => `--allow-fs-${path}`,
      )
      const program = await Program.start({ PLANT_STORE_ADMIN_PORT: '0' }, [...FLAGS, ...allowed])
      t.after(() => program.stop())
      const { admin } = await program.waitForLogEvent('start')
      assert.doesNotMatch(await scrapeMetrics(String(admin)), /_fds/)
      const events = program.stderr.lines.filter((line) => line.startsWith('{'))
      assert.equal(events.length, 1)
    },
  )
})

test('a histogram bucket counts all values up to its upper bound', () => {
  const histogram = createHistogram('h', 'Counts h.', [1, 10])
  const [first, second] = [histogram.addSeries({ of: 'x' }), histogram.addSeries({})]
  for (const value of [0.5, 1, 1.5, 10, 10.5]) first(value)
  second(2)
  assert.equal(
    formatFamilies([createSingleMetric('gauge', 'a', 'Is a.', () => 1.5), histogram]),
    '# HELP a Is a.\n# TYPE a gauge\na 1.5\n# HELP h Counts h.\n# TYPE h histogram\n' +
      'h_bucket{of="x",le="1"} 2\nh_bucket{of="x",le="10"} 4\nh_bucket{of="x",le="+Inf"} 5\n' +
      'h_sum{of="x"} 23.5\nh_count{of="x"} 5\n' +
      'h_bucket{le="1"} 0\nh_bucket{le="10"} 1\nh_bucket{le="+Inf"} 1\nh_sum 2\nh_count 1\n',
  )
})
