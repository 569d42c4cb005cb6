import type { IncomingMessage, ServerResponse } from 'node:http'
import type { HttpServer } from '../http-server.ts'
import { arrivedAt } from '../../http/request-queue.ts'
import type { OperationObject } from '../../openapi/description.ts'
import { openapi } from '../../openapi/openapi.ts'
import { OPERATIONS, type ResourcePath } from '../../legacy/operations.ts'
import type { Store } from '../../legacy/plants/store.ts'
import { metricsOf } from '../../stores/store-metrics.ts'
import { performance } from '../../legacy/timers.ts'
import { eventCounts, rejectedFiles } from '../log.ts'
import type { FindResource } from '../requests.ts'
import {
  createHistogram,
  createFamily,
  formatFamilies,
  createSingleMetric,
  type MetricFamily,
  type Observe,
} from './metric-families.ts'
import { createProcessMetrics, createDescriptorMetrics } from './process-metrics.ts'
import { createStoreCallMetrics } from './store-call-metrics.ts'

/** The methods that become label values. Any other method counts as `_OTHER`. CONNECT requests aren't counted. */
const KNOWN_METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'DELETE', 'OPTIONS', 'TRACE', 'PATCH']

/**
 * Returns the documented statuses of an operation, except 405 (returned only for other methods) and 408 (sent before
 * the operation is reached).
 */
function getDocumentedStatuses(path: string, method: string): readonly number[] {
  const pathItem = openapi.paths[path as ResourcePath] as Readonly<Record<string, Pick<OperationObject, 'responses'>>>
  const statuses = Object.keys(pathItem[method.toLowerCase()]!.responses).map(Number)
  return statuses.filter((status) => status !== 405 && status !== 408)
}

export interface Metrics {
  readonly onRequest: (request: IncomingMessage, response: ServerResponse) => void
  readonly onRejection: (error: { readonly status: number }) => void
  readonly instrumentStore: (store: Store) => Store
  readonly instrumentServer: (http: HttpServer) => void
  readonly format: (isReady: boolean) => string
}

/** Creates the metrics of the standalone server, and the hooks that update them. */
export function createMetrics(findResource: FindResource): Metrics {
  const durations = createHistogram(
    'http_server_request_duration_seconds',
    'Time from the request header to the end of the response.',
  )
  /**
   * Series by route, then by a number that combines method and status. A string key would be allocated on each request.
   */
  const seriesByRoute = new Map<string, Map<number, Observe>>()
  const rejectionCounts = new Map([400, 408, 431].map((status) => [status, 0]))
  let activeRequests = 0

  function getSeries(route: string, method: number, status: number): Observe {
    let routeSeries = seriesByRoute.get(route)
    if (routeSeries === undefined) seriesByRoute.set(route, (routeSeries = new Map<number, Observe>()))
    const key = 1000 * method + status
    let observe = routeSeries.get(key)
    if (observe === undefined) {
      const labels = {
        http_request_method: KNOWN_METHODS[method] ?? '_OTHER',
        http_route: route,
        http_response_status_code: status || 'none',
      }
      routeSeries.set(key, (observe = durations.addSeries(labels)))
    }
    return observe
  }

  // Create all documented series now, so that they start at 0: for a counter that first appears as 1, Prometheus's
  // rate() and increase() miss the first event.
  for (const [path, operations] of Object.entries(OPERATIONS)) {
    for (const method of Object.keys(operations)) {
      for (const status of [0, ...getDocumentedStatuses(path, method)])
        getSeries(path, KNOWN_METHODS.indexOf(method), status)
    }
  }

  const storeMetrics = createStoreCallMetrics()
  const families: MetricFamily[] = [
    durations,
    createSingleMetric('gauge', 'http_server_active_requests', 'Requests in progress.', () => activeRequests),
    createFamily(
      'counter',
      'plant_store_http_refusals_total',
      'Requests that the HTTP server rejected before they reached the service.',
      () => {
        return Array.from(rejectionCounts, ([status, count]) => [{ http_response_status_code: status }, count])
      },
    ),
    ...storeMetrics.families,
    ...createProcessMetrics(),
    createFamily('counter', 'plant_store_log_events_total', 'Log events by name, including dropped ones.', () => {
      return Array.from(eventCounts, ([event, count]) => [{ event }, count])
    }),
    createFamily(
      'gauge',
      'plant_store_settings_file_rejected',
      'Whether the latest content of the settings file was rejected.',
      () => {
        return Array.from(rejectedFiles, ([setting, isRejected]) => [{ setting }, Number(isRejected)])
      },
    ),
  ]
  return {
    onRequest(request, response) {
      const startedAt = arrivedAt(response)
      activeRequests++
      response.on('close', () => {
        activeRequests--
        const route = findResource(request)?.path ?? 'unmatched'
        // The client might disconnect before a response is sent.
        const status = response.headersSent ? response.statusCode : 0
        const observe = getSeries(route, KNOWN_METHODS.indexOf(request.method!), status)
        observe((performance.now() - startedAt) / 1000)
      })
    },
    onRejection: ({ status }) => rejectionCounts.set(status, rejectionCounts.get(status)! + 1),
    instrumentStore(target) {
      families.push(...metricsOf(target).gauges.map((gauge) => createSingleMetric('gauge', ...gauge)))
      return storeMetrics.instrument(target)
    },
    instrumentServer({ server, connectionCount }) {
      let droppedConnections = 0
      server.on('drop', () => droppedConnections++)
      families.push(
        createSingleMetric('gauge', 'plant_store_http_open_connections', 'Open connections.', connectionCount),
        createSingleMetric(
          'gauge',
          'plant_store_http_max_connections',
          'Maximum number of open connections.',
          () => server.maxConnections,
        ),
        createSingleMetric(
          'counter',
          'plant_store_http_dropped_connections_total',
          'Connections dropped because the maximum was reached.',
          () => droppedConnections,
        ),
      )
    },
    format(isReady) {
      const ready = createSingleMetric('gauge', 'plant_store_ready', 'Whether /readyz returns 200.', () => isReady)
      return formatFamilies([...families, ...createDescriptorMetrics(), ready])
    },
  }
}
