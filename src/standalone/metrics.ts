import type { IncomingMessage, ServerResponse } from 'node:http'
import { getHeapStatistics } from 'node:v8'
import type { HttpError } from '../http/errors.ts'
import { route } from '../http/router.ts'
import type { PlantServer } from '../http-server/create-server.ts'
import { isUnavailable, type Store } from '../plants/store.ts'
import { VERSION } from '../version.ts'
import { pathOf } from './endpoints.ts'

/**
 * Labels of a series. Values must never come from clients, because a client could then create any number of series, and
 * because values aren't escaped in the output.
 */
type Labels = Readonly<Record<string, string | number>>

type Metric = () => string

/** The bucket bounds that OpenTelemetry's semantic conventions recommend for durations, in seconds. */
const BOUNDS = [0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10]

/** The methods that become label values. Any other method counts as `_OTHER`. */
const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'DELETE', 'OPTIONS', 'TRACE', 'PATCH']

export interface Metrics {
  readonly onRequest: (request: IncomingMessage, response: ServerResponse) => void
  readonly onRejection: (error: HttpError) => void
  /** Returns a store whose calls are measured. */
  readonly measureStore: (store: Store) => Store
  readonly format: (server: PlantServer) => string
}

/** Creates the metrics of the standalone server, and the hooks that update them. */
export function createMetrics(endpoints: ReadonlyMap<string, unknown>): Metrics {
  const requests = createHistogram(
    'http_server_request_duration_seconds',
    'Time from the request header to the end of the response.',
  )
  const storeCalls = createHistogram('plant_store_store_call_duration_seconds', 'Duration of store calls.')
  /** The number of rejected requests by status. */
  const rejections = new Map<number, number>()

  function findRoute(url: string): string {
    const path = pathOf(url)
    return endpoints.has(path) ? path : (route('', url)?.path ?? 'unmatched')
  }

  function measureCall<A extends unknown[], R>(operation: string, call: (...args: A) => R): (...args: A) => R {
    return (...args) => {
      const startedAt = performance.now()
      const end = (outcome: string): void => storeCalls.observe({ operation, outcome }, performance.now() - startedAt)
      try {
        const result = call(...args)
        if (result instanceof Promise)
          result.then(
            () => end('ok'),
            (error: unknown) => end(classify(error)),
          )
        else end('ok')
        return result
      } catch (error) {
        end(classify(error))
        throw error
      }
    }
  }

  return {
    onRequest({ method, url }, response) {
      const startedAt = performance.now()
      response.once('close', () => {
        const labels = {
          http_request_method: METHODS.includes(method!) ? method! : '_OTHER',
          http_route: findRoute(url!),
          // The client might disconnect before a response is sent.
          http_response_status_code: response.headersSent ? response.statusCode : 'none',
        }
        requests.observe(labels, performance.now() - startedAt)
      })
    },
    onRejection: ({ status }) => void rejections.set(status, (rejections.get(status) ?? 0) + 1),
    measureStore(store) {
      return {
        create: measureCall('create', store.create.bind(store)),
        list: measureCall('list', store.list.bind(store)),
        delete: measureCall('delete', store.delete.bind(store)),
        ping: store.ping && measureCall('ping', store.ping.bind(store)),
      }
    },
    format(server) {
      const rejected = Array.from(rejections, ([status, count]): Sample => {
        return ['', { http_response_status_code: status }, count]
      })
      const help = 'Requests that the HTTP server rejected before they reached the service.'
      const connections = single('gauge', 'plant_store_open_connections', 'Open connections.', server.connectionCount)
      return [
        requests.format(),
        formatMetric('counter', 'plant_store_rejected_requests_total', help, rejected),
        storeCalls.format(),
        connections(),
        ...PROCESS_METRICS.map((format) => format()),
      ].join('')
    },
  }
}

function classify(error: unknown): string {
  if (!isUnavailable(error)) return 'fault'
  return error.isOutcomeUnknown ? 'unknown' : 'unavailable'
}

/** The process metrics, with the names that Prometheus's own client libraries use. */
const PROCESS_METRICS: readonly Metric[] = [
  single('counter', 'process_cpu_seconds_total', 'User and system CPU time, in seconds.', () => {
    const { user, system } = process.cpuUsage()
    return (user + system) / 1e6
  }),
  single('gauge', 'process_start_time_seconds', 'Start time in Unix seconds.', () => performance.timeOrigin / 1000),
  single('gauge', 'process_resident_memory_bytes', 'Resident memory size.', () => process.memoryUsage.rss()),
  single('gauge', 'nodejs_heap_size_used_bytes', 'Used heap memory.', () => getHeapStatistics().used_heap_size),
  single('gauge', 'plant_store_build_info', 'Versions of plant-store and Node. The value is always 1.', () => 1, {
    version: VERSION,
    node: process.versions.node,
  }),
]

function single(type: string, name: string, help: string, getValue: () => number, labels: Labels = {}): Metric {
  return () => formatMetric(type, name, help, [['', labels, getValue()]])
}

interface Histogram {
  readonly observe: (labels: Labels, durationMs: number) => void
  readonly format: Metric
}

function createHistogram(name: string, help: string): Histogram {
  const allSeries = new Map<string, { readonly labels: Labels; readonly buckets: Float64Array; sum: number }>()
  return {
    observe(labels, durationMs) {
      const key = Object.values(labels).join()
      let series = allSeries.get(key)
      if (series === undefined) {
        series = { labels, buckets: new Float64Array(BOUNDS.length + 1), sum: 0 }
        allSeries.set(key, series)
      }
      const seconds = durationMs / 1000
      let i = 0
      while (seconds > BOUNDS[i]!) i++
      series.buckets[i]!++
      series.sum += seconds
    },
    format() {
      const samples = Array.from(allSeries.values(), ({ labels, buckets, sum }): readonly Sample[] => {
        let total = 0
        const cumulated = Array.from(buckets, (count, i): Sample => {
          total += count
          return ['_bucket', { ...labels, le: BOUNDS[i] ?? '+Inf' }, total]
        })
        return [...cumulated, ['_sum', labels, sum], ['_count', labels, total]]
      })
      return formatMetric('histogram', name, help, samples.flat())
    },
  }
}

/** The suffix, such as `_sum`, distinguishes the series of a histogram. */
type Sample = readonly [suffix: string, labels: Labels, value: number]

function formatMetric(type: string, name: string, help: string, samples: readonly Sample[]): string {
  const lines = samples.map(([suffix, labels, value]) => {
    const pairs = Object.entries(labels).map(([label, text]) => `${label}="${text}"`)
    return `${name}${suffix}${pairs.length === 0 ? '' : `{${pairs.join(',')}}`} ${value}\n`
  })
  return `# HELP ${name} ${help}\n# TYPE ${name} ${type}\n${lines.join('')}`
}
