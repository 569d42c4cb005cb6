import type { HttpError } from '../http/errors.ts'
import type { PlantStoreOptions } from '../options.ts'
import { describeError, log } from './log.ts'
import type { RequestHead } from './http-server.ts'
import { idOf } from './request-ids.ts'

type Reports = Required<Pick<PlantStoreOptions, 'onError' | 'onResponse'>>

/**
 * Makes the listeners of the service that log failures, and with `accessLog` every response.
 * @param slowMs a response that took at least so long is logged as slow
 */
export function createReports(accessLog: boolean, slowMs?: number): Reports {
  /** Requests whose response is 500 or 503, or broke off. */
  const failed = new WeakSet()

  return {
    onError(error, request) {
      failed.add(request)
      log('failure', { request: idOf(request), reason: describeError(error) })
    },
    onResponse({ request, resource, owner, status, error, bytes, complete, durationMs }) {
      const isLogged = accessLog || failed.has(request)
      const isSlow = slowMs !== undefined && durationMs >= slowMs
      if (!isLogged && !isSlow) return
      const { method } = request
      const fields = { request: idOf(request), method, resource, owner, status, error, bytes, complete, durationMs }
      if (isSlow) log('slow', fields)
      if (isLogged) log('response', fields)
    },
  }
}

/** Logs a request that was refused before the service saw it. */
export function reportRefusal({ status, error }: HttpError, request: RequestHead): void {
  log('refused', { request: idOf(request), status, error })
}
