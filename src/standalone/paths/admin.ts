import type { RequestListener } from 'node:http'
import { HttpError } from '../../http/errors.ts'
import { respond } from '../../http/respond.ts'
import type { HttpResponse } from '../../http/response.ts'
import { createProbes } from './probes.ts'
import { serveGets } from './program-paths.ts'
import type { Readiness } from './readiness.ts'

/**
 * Makes the listener of the admin port: the probes and the metrics. None needs a token.
 * @param formatMetrics writes them in Prometheus's text format
 */
export function createAdminListener(
  readiness: () => Promise<Readiness>,
  formatMetrics: (isReady: boolean) => string,
): RequestListener {
  const getMetrics = async (): Promise<HttpResponse> => ({
    status: 200,
    headers: [],
    contentType: 'text/plain; version=0.0.4; charset=utf-8',
    body: formatMetrics((await readiness()) === 'ready'),
  })
  return serveGets([...Object.entries(createProbes(readiness)), ['/metrics', getMetrics]], refuseUnknownPath)
}

const refuseUnknownPath: RequestListener = (request, response) => {
  const message = 'There is nothing at this path. Here are /livez, /readyz and /metrics.'
  void respond(request, response, new HttpError('noResource', message))
}
