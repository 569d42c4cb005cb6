import { HTTP_ERRORS, HttpError } from '../../http/errors.ts'
import { jsonResponse, type HttpResponse } from '../../http/response.ts'
import type { MaybePromise } from '../../maybe-promise.ts'
import type { Readiness } from './readiness.ts'

export type Probe = () => MaybePromise<HttpResponse>

const LIVE = jsonResponse(200, [], { status: 'live' })

const BY_READINESS: Readonly<Record<Readiness, HttpResponse>> = {
  ready: jsonResponse(200, [], { status: 'ready' }),
  unready: HTTP_ERRORS.storeUnavailable,
  draining: new HttpError('storeUnavailable', 'The service is shutting down.'),
}

/** Makes the probes by their paths: whether the program lives, and whether it can serve. */
export function createProbes(readiness: () => Promise<Readiness>): Readonly<Record<'/livez' | '/readyz', Probe>> {
  return {
    '/livez': () => LIVE,
    '/readyz': async () => BY_READINESS[await readiness()],
  }
}
