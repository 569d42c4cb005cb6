import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Routes } from '../paths/routes.ts'
import { Counter, Histogram, SECONDS, single, type Family, type Series } from './families.ts'

/** The methods that may be a label; a client may send any other name. CONNECT never comes this far. */
const METHODS = new Set(['GET', 'HEAD', 'POST', 'PUT', 'DELETE', 'OPTIONS', 'TRACE', 'PATCH'])

/** The client may have gone before there was a response. */
type Status = number | 'none'
type ByStatus = Map<Status, Series>

/** Counts and times of the requests of a server. */
export interface RequestMetrics {
  readonly families: readonly Family[]
  readonly onRequest: (request: IncomingMessage, response: ServerResponse) => void
  readonly onRefusal: (error: { readonly status: number }) => void
}

export function createRequestMetrics(routes: Routes): RequestMetrics {
  const durations = new Histogram(
    'http_server_request_duration_seconds',
    'How long requests took, from their turn on the connection to the end of the response.',
    SECONDS,
  )
  const refusals = new Counter(
    'plant_store_http_refusals_total',
    'Requests that were refused before the service saw them: late, too large or malformed.',
  )
  // To join the three to one key would take longer than all else here.
  const series = new Map<string, Map<string, ByStatus>>()
  let active = 0

  function find(method: string, route: string, status: Status): Series {
    const byMethod = findOrAdd(series, route, () => new Map<string, ByStatus>())
    const byStatus = findOrAdd(byMethod, method, () => new Map<Status, Series>())
    return findOrAdd(byStatus, status, () =>
      durations.addSeries({
        http_request_method: method,
        http_route: route,
        http_response_status_code: String(status),
      }),
    )
  }

  return {
    families: [
      durations,
      single('gauge', 'http_server_active_requests', 'Requests that are being served.', () => active),
      refusals,
    ],
    onRequest(request, response) {
      const startedAt = performance.now()
      active++
      response.on('close', () => {
        active--
        const method = METHODS.has(request.method!) ? request.method! : '_OTHER'
        const status = response.headersSent ? response.statusCode : 'none'
        find(method, routes.find(request.url!) ?? 'unmatched', status).observe((performance.now() - startedAt) / 1000)
      })
    },
    onRefusal({ status }) {
      refusals.add({ http_response_status_code: String(status) })
    },
  }
}

function findOrAdd<K, V>(map: Map<K, V>, key: K, make: () => V): V {
  let found = map.get(key)
  if (found === undefined) map.set(key, (found = make()))
  return found
}
