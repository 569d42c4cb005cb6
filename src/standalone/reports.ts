import type { PlantStoreOptions } from '../options.ts'
import { describeError, log } from './log.ts'
import { idOf } from './request-ids.ts'

type Reports = Required<Pick<PlantStoreOptions, 'onError' | 'onResponse'>>

/** Makes the listeners of the service that log failures, and with `accessLog` every response. */
export function createReports(accessLog: boolean): Reports {
  return {
    onError(error, request) {
      log('failure', { request: idOf(request), reason: describeError(error) })
    },
    onResponse({ request, resource, owner, status, error, bytes, durationMs }) {
      // A 501 is no failure: any client can cause one, without a token.
      const isFailure = status === 500 || status === 503
      if (!isFailure && !accessLog) return
      const { method } = request
      log('response', { request: idOf(request), method, resource, owner, status, error, bytes, durationMs })
    },
  }
}
