import type { RequestListener } from 'node:http'
import { HttpError } from '../http/errors.ts'
import { respond } from '../http/respond.ts'
import { errorResponse, type HttpResponse } from '../http/response.ts'
import type { Metrics } from './metrics/metrics.ts'
import { createProbes } from './probes.ts'
import { serveGets } from './program-paths.ts'
import type { Readiness } from './readiness.ts'

/** Makes the listener of the admin port: the probes and the metrics. None needs a token. */
export function createAdminListener(readiness: () => Promise<Readiness>, metrics: Metrics): RequestListener {
  const getMetrics = async (): Promise<HttpResponse> => ({
    status: 200,
    headers: [],
    contentType: 'text/plain; version=0.0.4; charset=utf-8',
    body: metrics.format((await readiness()) === 'ready'),
  })
  return serveGets([...Object.entries(createProbes(readiness)), ['/metrics', getMetrics]], refuseUnknownPath)
}

const refuseUnknownPath: RequestListener = (request, response) => {
  const message = 'There is nothing at this path. Here are /livez, /readyz and /metrics.'
  void respond(request, response, errorResponse(new HttpError('noResource', message)))
}
