import { VERSION } from '../../version.ts'
import { single, type Family } from './families.ts'

const MICROSECOND = 1e-6

/** Metrics of the process, under the names that Prometheus's own client libraries use. */
export function createProcessMetrics(): readonly Family[] {
  const startedAt = performance.timeOrigin / 1000
  return [
    single('counter', 'process_cpu_seconds_total', 'CPU time of the process, in seconds.', () => {
      const { user, system } = process.cpuUsage()
      return (user + system) * MICROSECOND
    }),
    single('gauge', 'process_start_time_seconds', 'When the process started, in seconds since 1970.', () => startedAt),
    single('gauge', 'process_resident_memory_bytes', 'Memory that the process has in RAM.', () => {
      return process.memoryUsage.rss()
    }),
    single('gauge', 'nodejs_heap_size_used_bytes', 'Memory of the heap that is in use.', () => {
      return process.memoryUsage().heapUsed
    }),
    single('gauge', 'nodejs_heap_size_total_bytes', 'Memory of the heap.', () => process.memoryUsage().heapTotal),
    {
      name: 'plant_store_build_info',
      help: 'Which version runs, on which Node.',
      type: 'gauge',
      samples: () => [[{ version: VERSION, node: process.versions.node }, 1]],
    },
  ]
}
