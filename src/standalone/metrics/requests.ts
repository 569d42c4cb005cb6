import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Routes } from '../paths/routes.ts'
import { Counter, Histogram, SECONDS, single, type Family, type Series } from './families.ts'

/** The methods that may be a label; a client may send any other name. CONNECT never comes this far. */
const METHODS = new Set(['GET', 'HEAD', 'POST', 'PUT', 'DELETE', 'OPTIONS', 'TRACE', 'PATCH'])

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
  const series = new Map<string, Series>()
  let active = 0

  function find(method: string, route: string, status: string): Series {
    const key = `${method} ${route} ${status}`
    let found = series.get(key)
    if (found === undefined) {
      found = durations.addSeries({
        http_request_method: method,
        http_route: route,
        http_response_status_code: status,
      })
      series.set(key, found)
    }
    return found
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
      response.once('close', () => {
        active--
        const method = METHODS.has(request.method!) ? request.method! : '_OTHER'
        // The client may have gone before there was a response.
        const status = response.headersSent ? String(response.statusCode) : 'none'
        find(method, routes.find(request.url!) ?? 'unmatched', status).observe((performance.now() - startedAt) / 1000)
      })
    },
    onRefusal({ status }) {
      refusals.add({ http_response_status_code: String(status) })
    },
  }
}
