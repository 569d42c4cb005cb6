import { randomUUID } from 'node:crypto'
import type { PlantStoreOptions } from '../options.ts'
import { describeError, log } from './log.ts'

type Reports = Required<Pick<PlantStoreOptions, 'onError' | 'onResponse'>>

/** Makes the listeners of the service that log failures, and with `accessLog` every response. */
export function createReports(accessLog: boolean): Reports {
  /** An id that the lines about one request share. Only a request that fails gets one. */
  const ids = new WeakMap<WeakKey, string>()

  function idOf(request: WeakKey): string {
    const id = ids.get(request) ?? randomUUID()
    ids.set(request, id)
    return id
  }

  return {
    onError(error, request) {
      log('failure', { request: idOf(request), reason: describeError(error) })
    },
    onResponse({ request, resource, owner, status, error, bytes, durationMs }) {
      // A 501 is no failure: any client can cause one, without a token.
      const isFailure = status === 500 || status === 503
      if (!isFailure && !accessLog) return
      const id = isFailure ? idOf(request) : undefined
      const { method } = request
      log('response', { request: id, method, resource, owner, status, error, bytes, durationMs })
    },
  }
}
