import { readdirSync, readFileSync } from 'node:fs'
import { performance as nodePerformance } from 'node:perf_hooks'
import { getHeapStatistics as heap } from 'node:v8'
import { performance, setTimeout } from '../../legacy/timers.ts'
import { VERSION } from '../../version.ts'
import { createHistogram, createFamily, createSingleMetric, type MetricFamily } from './metric-families.ts'

const TIMER_INTERVAL_MS = 100

/** Creates the process metrics, with the names that Prometheus's own client libraries use. */
export function createProcessMetrics(): readonly MetricFamily[] {
  const startedAt = nodePerformance.timeOrigin / 1000
  return [
    createSingleMetric('counter', 'process_cpu_seconds_total', 'User and system CPU time, in seconds.', () => {
      const { user, system } = process.cpuUsage()
      return (user + system) / 1e6
    }),
    createSingleMetric(
      'gauge',
      'process_start_time_seconds',
      'Start time of the process, in seconds since the Unix epoch.',
      () => startedAt,
    ),
    createFamily('gauge', 'process_resident_memory_bytes', 'Resident memory size.', () => {
      try {
        return [[{}, process.memoryUsage.rss()]]
      } catch {
        // On Linux, Node reads the size from a file, which fails if no file descriptor is left.
        return []
      }
    }),
    createSingleMetric('gauge', 'nodejs_heap_size_used_bytes', 'Used heap memory.', () => heap().used_heap_size),
    createSingleMetric('gauge', 'nodejs_heap_size_total_bytes', 'Total heap memory.', () => heap().total_heap_size),
    createFamily('gauge', 'plant_store_build_info', 'Versions of plant-store and Node. The value is always 1.', () => {
      return [[{ version: VERSION, node: process.versions.node }, 1]]
    }),
    createEventLoopMetric(),
  ]
}

/** The maximum number of file descriptors, from the latest scrape that could read it. */
let maxDescriptors = NaN

/** Creates the file descriptor metrics. Returns an empty array on systems without `/proc`. */
export function createDescriptorMetrics(procDirectory = '/proc/self'): readonly MetricFamily[] {
  let openDescriptors: number
  try {
    maxDescriptors = Number(/^Max open files +(\d+)/m.exec(readFileSync(`${procDirectory}/limits`, 'utf8'))![1])
    // Don't count the descriptor that is open for listing the directory.
    openDescriptors = readdirSync(`${procDirectory}/fd`).length - 1
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EMFILE') return []
    // EMFILE: listing needs a descriptor and none is left, so the maximum is in use.
    openDescriptors = maxDescriptors
  }
  return [
    createSingleMetric('gauge', 'process_open_fds', 'Open file descriptors.', () => openDescriptors),
    createSingleMetric('gauge', 'process_max_fds', 'Maximum number of open file descriptors.', () => maxDescriptors),
  ]
}

/**
 * Measures the event loop delay as the lateness of a timer. Node's own measurement yields quantiles, which can't be
 * aggregated across processes.
 */
function createEventLoopMetric(): MetricFamily {
  const delays = createHistogram(
    'nodejs_eventloop_delay_seconds',
    'Event loop delay, measured as the lateness of a timer.',
  )
  const observe = delays.addSeries({})

  let expectedAt = performance.now() + TIMER_INTERVAL_MS
  const timer = setTimeout(() => {
    // Timers sometimes fire less than a millisecond early.
    observe(Math.max(0, performance.now() - expectedAt) / 1000)
    expectedAt = performance.now() + TIMER_INTERVAL_MS
    timer.refresh()
  }, TIMER_INTERVAL_MS).unref()
  return delays
}
