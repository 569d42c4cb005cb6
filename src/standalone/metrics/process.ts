import { readdirSync, readFileSync } from 'node:fs'
import { performance as nodePerformance } from 'node:perf_hooks'
import { getHeapStatistics as heap } from 'node:v8'
import { performance, setTimeout } from '../../timers.ts'
import { VERSION } from '../../version.ts'
import { createHistogram, family, single, type Family } from './families.ts'

const INTERVAL_MS = 100

/** Metrics of the process, under the names that Prometheus's own client libraries use. */
export function createProcessMetrics(): readonly Family[] {
  const startedAt = nodePerformance.timeOrigin / 1000
  return [
    single('counter', 'process_cpu_seconds_total', 'CPU time of the process, in seconds.', () => {
      const { user, system } = process.cpuUsage()
      return (user + system) / 1e6
    }),
    single('gauge', 'process_start_time_seconds', 'When the process started, in seconds since 1970.', () => startedAt),
    family('gauge', 'process_resident_memory_bytes', 'Memory of the process in RAM.', () => {
      try {
        return [[{}, process.memoryUsage.rss()]]
      } catch {
        // Linux tells it in a file, and no descriptor is left to read one.
        return []
      }
    }),
    single('gauge', 'nodejs_heap_size_used_bytes', 'Memory of the heap in use.', () => heap().used_heap_size),
    single('gauge', 'nodejs_heap_size_total_bytes', 'Memory of the heap.', () => heap().total_heap_size),
    family('gauge', 'plant_store_build_info', 'Which version runs, on which Node.', () => {
      return [[{ version: VERSION, node: process.versions.node }, 1]]
    }),
    measureEventLoop(),
  ]
}

/** How many file descriptors the process could have at the latest scrape. */
let max = NaN

export function readDescriptors(process = '/proc/self'): readonly Family[] {
  let open: number
  try {
    max = Number(/^Max open files +(\d+)/m.exec(readFileSync(`${process}/limits`, 'utf8'))![1])
    // One of them reads the folder.
    open = readdirSync(`${process}/fd`).length - 1
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EMFILE') return []
    // None is left to count the others with.
    open = max
  }
  return [
    single('gauge', 'process_open_fds', 'File descriptors that are open.', () => open),
    single('gauge', 'process_max_fds', 'File descriptors that may be open.', () => max),
  ]
}

/** Measures how late the event loop runs a timer. Node's own figures are quantiles, which cannot be added up. */
function measureEventLoop(): Family {
  const delays = createHistogram('nodejs_eventloop_delay_seconds', 'How late the event loop ran a timer.')
  const observe = delays.addSeries({})

  let due = performance.now() + INTERVAL_MS
  const timer = setTimeout(() => {
    // A timer may be early, by less than a millisecond.
    observe(Math.max(0, performance.now() - due) / 1000)
    due = performance.now() + INTERVAL_MS
    timer.refresh()
  }, INTERVAL_MS).unref()
  return delays
}
