import type { IncomingMessage, ServerResponse } from 'node:http'
import { arrivalOf } from '../../http/turn.ts'
import type { ResourceOf } from '../requests.ts'
import { createHistogram, single, type Family, type Observe } from './families.ts'

/** The methods that may be a label; a client may send any other name. CONNECT never comes this far. */
const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'DELETE', 'OPTIONS', 'TRACE', 'PATCH']

export interface RequestMetrics {
  readonly families: readonly Family[]
  readonly onRequest: (request: IncomingMessage, response: ServerResponse) => void
  readonly onRefusal: (error: { readonly status: number }) => void
}

export function createRequestMetrics(resourceOf: ResourceOf): RequestMetrics {
  const durations = createHistogram(
    'http_server_request_duration_seconds',
    'How long requests took, from the arrival of their header to the end of the response.',
  )
  /** By route, then by method and status, as a text that joins the three would be new for each request. */
  const series = new Map<string, Map<number, Observe>>()
  const refusals = new Map<number, number>()
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

  return {
    families: [
      durations,
      single('gauge', 'http_server_active_requests', 'Requests that are being served.', () => active),
      {
        name: 'plant_store_http_refusals_total',
        help: 'Requests that were refused before the service saw them: late, too large or malformed.',
        type: 'counter',
        samples: () => Array.from(refusals, ([status, count]) => [{ http_response_status_code: status }, count]),
      },
    ],
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
    onRefusal: ({ status }) => refusals.set(status, (refusals.get(status) ?? 0) + 1),
  }
}
