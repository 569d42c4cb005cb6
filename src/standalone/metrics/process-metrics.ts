import { readdirSync, readFileSync } from 'node:fs'
import { performance as nodePerformance } from 'node:perf_hooks'
import { getHeapStatistics as heap } from 'node:v8'
import { performance, setTimeout } from '../../timers.ts'
import { VERSION } from '../../version.ts'
import { createHistogram, createFamily, createSingleMetric, type MetricFamily } from './metric-families.ts'

const TIMER_INTERVAL_MS = 100

/** Metrics of the process, under the names that Prometheus's own client libraries use. */
export function createProcessMetrics(): readonly MetricFamily[] {
  const startedAt = nodePerformance.timeOrigin / 1000
  return [
    createSingleMetric('counter', 'process_cpu_seconds_total', 'CPU time of the process, in seconds.', () => {
      const { user, system } = process.cpuUsage()
      return (user + system) / 1e6
    }),
    createSingleMetric(
      'gauge',
      'process_start_time_seconds',
      'When the process started, in seconds since 1970.',
      () => startedAt,
    ),
    createFamily('gauge', 'process_resident_memory_bytes', 'Memory of the process in RAM.', () => {
      try {
        return [[{}, process.memoryUsage.rss()]]
      } catch {
        // Linux tells it in a file, and no descriptor is left to read one.
        return []
      }
    }),
    createSingleMetric(
      'gauge',
      'nodejs_heap_size_used_bytes',
      'Memory of the heap in use.',
      () => heap().used_heap_size,
    ),
    createSingleMetric('gauge', 'nodejs_heap_size_total_bytes', 'Memory of the heap.', () => heap().total_heap_size),
    createFamily('gauge', 'plant_store_build_info', 'Which version runs, on which Node.', () => {
      return [[{ version: VERSION, node: process.versions.node }, 1]]
    }),
    createEventLoopMetric(),
  ]
}

/** How many file descriptors the process could have at the latest scrape. */
let maxDescriptors = NaN

export function createDescriptorMetrics(procDirectory = '/proc/self'): readonly MetricFamily[] {
  let openDescriptors: number
  try {
    maxDescriptors = Number(/^Max open files +(\d+)/m.exec(readFileSync(`${procDirectory}/limits`, 'utf8'))![1])
    // One of them reads the folder.
    openDescriptors = readdirSync(`${procDirectory}/fd`).length - 1
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EMFILE') return []
    // None is left to count the others with.
    openDescriptors = maxDescriptors
  }
  return [
    createSingleMetric('gauge', 'process_open_fds', 'File descriptors that are open.', () => openDescriptors),
    createSingleMetric('gauge', 'process_max_fds', 'File descriptors that may be open.', () => maxDescriptors),
  ]
}

/** Measures how late the event loop runs a timer. Node's own figures are quantiles, which cannot be added up. */
function createEventLoopMetric(): MetricFamily {
  const delays = createHistogram('nodejs_eventloop_delay_seconds', 'How late the event loop ran a timer.')
  const observe = delays.addSeries({})

  let expectedAt = performance.now() + TIMER_INTERVAL_MS
  const timer = setTimeout(() => {
    // A timer may be early, by less than a millisecond.
    observe(Math.max(0, performance.now() - expectedAt) / 1000)
    expectedAt = performance.now() + TIMER_INTERVAL_MS
    timer.refresh()
  }, TIMER_INTERVAL_MS).unref()
  return delays
}
