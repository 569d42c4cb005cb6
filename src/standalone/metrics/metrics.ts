import type { IncomingMessage, ServerResponse } from 'node:http'
import type { HttpServer } from '../../http-server/http-server.ts'
import { arrivalOf } from '../../http/turn.ts'
import type { OperationObject } from '../../openapi/description.ts'
import { openapi } from '../../openapi/openapi.ts'
import { OPERATIONS, type ResourcePath } from '../../operations.ts'
import type { Store } from '../../plants/store.ts'
import { figuresOf } from '../../stores/figures.ts'
import { performance } from '../../timers.ts'
import { eventCounts, rejectedFiles } from '../log.ts'
import type { ResourceOf } from '../requests.ts'
import { createHistogram, family, formatFamilies, single, type Family, type Observe } from './families.ts'
import { createProcessMetrics, readDescriptors } from './process.ts'
import { createStoreMetrics } from './store-calls.ts'

/** The methods that may be a label; a client may send any other name. CONNECT never comes this far. */
const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'DELETE', 'OPTIONS', 'TRACE', 'PATCH']

/** The statuses that an operation can have. 405 is that of other methods, and 408 is sent before it is reached. */
function statusesOf(path: string, method: string): readonly number[] {
  const item = openapi.paths[path as ResourcePath] as Readonly<Record<string, Pick<OperationObject, 'responses'>>>
  const statuses = Object.keys(item[method.toLowerCase()]!.responses).map(Number)
  return statuses.filter((status) => status !== 405 && status !== 408)
}

export interface Metrics {
  readonly onRequest: (request: IncomingMessage, response: ServerResponse) => void
  readonly onRefusal: (error: { readonly status: number }) => void
  readonly watchStore: (store: Store) => Store
  readonly watchServer: (http: HttpServer) => void
  readonly format: (isReady: boolean) => string
}

export function createMetrics(resourceOf: ResourceOf): Metrics {
  const durations = createHistogram('http_server_request_duration_seconds', 'From a header to the end of its response.')
  /** By route, then by method and status, as a text that joins the three would be new for each request. */
  const series = new Map<string, Map<number, Observe>>()
  const refusals = new Map([400, 408, 431].map((status) => [status, 0]))
  let active = 0

  function seriesOf(route: string, method: number, status: number): Observe {
    let ofRoute = series.get(route)
    if (ofRoute === undefined) series.set(route, (ofRoute = new Map<number, Observe>()))
    const key = 1000 * method + status
    let observe = ofRoute.get(key)
    if (observe === undefined) {
      const labels = {
        http_request_method: METHODS[method] ?? '_OTHER',
        http_route: route,
        http_response_status_code: status || 'none',
      }
      ofRoute.set(key, (observe = durations.addSeries(labels)))
    }
    return observe
  }

  // A counter that starts at 1 has no rate, and no increase, for its first event.
  for (const [path, operations] of Object.entries(OPERATIONS)) {
    for (const method of Object.keys(operations)) {
      for (const status of [0, ...statusesOf(path, method)]) seriesOf(path, METHODS.indexOf(method), status)
    }
  }

  const store = createStoreMetrics()
  const families: Family[] = [
    durations,
    single('gauge', 'http_server_active_requests', 'Requests that are being served.', () => active),
    family('counter', 'plant_store_http_refusals_total', 'Requests refused before the service saw them.', () => {
      return Array.from(refusals, ([status, count]) => [{ http_response_status_code: status }, count])
    }),
    ...store.families,
    ...createProcessMetrics(),
    family('counter', 'plant_store_log_events_total', 'Events of the log, by name.', () => {
      return Array.from(eventCounts, ([event, count]) => [{ event }, count])
    }),
    family('gauge', 'plant_store_settings_file_rejected', 'Whether the latest content was rejected.', () => {
      return Array.from(rejectedFiles, ([setting, isRejected]) => [{ setting }, Number(isRejected)])
    }),
  ]
  return {
    onRequest(request, response) {
      const startedAt = arrivalOf(response)
      active++
      response.on('close', () => {
        active--
        const route = resourceOf(request)?.path ?? 'unmatched'
        // The client may have gone before there was a response.
        const status = response.headersSent ? response.statusCode : 0
        const observe = seriesOf(route, METHODS.indexOf(request.method!), status)
        observe((performance.now() - startedAt) / 1000)
      })
    },
    onRefusal: ({ status }) => refusals.set(status, refusals.get(status)! + 1),
    watchStore(watched) {
      families.push(...figuresOf(watched).gauges.map((gauge) => single('gauge', ...gauge)))
      return store.watch(watched)
    },
    watchServer({ server, connectionCount, isGuarded }) {
      let dropped = 0
      server.on('drop', () => dropped++)
      families.push(
        single('gauge', 'plant_store_http_open_connections', 'Connections that are open.', connectionCount),
        single('gauge', 'plant_store_http_max_connections', 'The most connections.', () => server.maxConnections),
        single('counter', 'plant_store_http_dropped_connections_total', 'Connections beyond the most.', () => dropped),
        single('gauge', 'plant_store_http_guarded', 'Whether connections are read in slices.', isGuarded),
      )
    },
    format(isReady) {
      const ready = single('gauge', 'plant_store_ready', 'Whether /readyz says 200.', () => isReady)
      return formatFamilies([...families, ...readDescriptors(), ready])
    },
  }
}
