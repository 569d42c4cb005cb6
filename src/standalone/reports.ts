import type { HttpError } from '../http/errors.ts'
import type { PlantStoreOptions } from '../options.ts'
import { describeError, log } from './log.ts'
import type { RequestHead } from './http-server.ts'
import { idOf } from './request-ids.ts'
import { throttle } from './throttle.ts'

type Reports = Required<Pick<PlantStoreOptions, 'onError' | 'onResponse'>>

/**
 * Makes the listeners of the service that log failures, and with `accessLog` every response.
 * @param slowMs a response that took at least so long is logged as slow
 */
export function createReports(accessLog: boolean, slowMs?: number): Reports {
  let latest: { readonly request: string; readonly error: unknown } | undefined
  // A full disk fails every request, and the log may be on it.
  const reportFailure = throttle((count) => {
    const { request, error } = latest!
    latest = undefined
    log('failure', { request, reason: describeError(error), count })
  })

  return {
    onError(error, request) {
      latest = { request: idOf(request), error }
      reportFailure()
    },
    onResponse({ request, resource, owner, status, error, bytes, complete, durationMs }) {
      const isSlow = slowMs !== undefined && durationMs >= slowMs
      if (!accessLog && !isSlow) return
      const { method } = request
      const fields = { request: idOf(request), method, resource, owner, status, error, bytes, complete, durationMs }
      if (isSlow) log('slow', fields)
      if (accessLog) log('response', fields)
    },
  }
}

/** Logs a request that was refused before the service saw it. */
export function reportRefusal({ status, error }: HttpError, request: RequestHead): void {
  log('refused', { request: idOf(request), status, error })
}
