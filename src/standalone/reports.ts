import { randomUUID } from 'node:crypto'
import type { PlantStoreOptions } from '../options.ts'
import { describeError, log } from './log.ts'

type Reports = Required<Pick<PlantStoreOptions, 'onError' | 'onResponse'>>

/** Makes what the service reports to: failures are logged, and with `accessLog` every answer is. */
export function createReports(accessLog: boolean): Reports {
  /** What the lines about one request have in common. Only those that fail get one. */
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
      // A 501 is what the client did, before anyone asked who it is.
      const isFailure = status === 500 || status === 503
      if (!isFailure && !accessLog) return
      const id = isFailure ? idOf(request) : undefined
      const { method } = request
      log('response', { request: id, method, resource, owner, status, error, bytes, durationMs })
    },
  }
}
