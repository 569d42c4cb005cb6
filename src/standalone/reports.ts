import { randomUUID } from 'node:crypto'
import type { PlantStoreOptions } from '../options.ts'
import { describeError, log } from './log.ts'

/** Makes what the service reports to: failures are logged, and with `accessLog` every answer is. */
export function createReports(accessLog: boolean): Required<Pick<PlantStoreOptions, 'onError' | 'onResponse'>> {
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
      const isFailure = status >= 500
      if (!isFailure && !accessLog) return
      const id = isFailure ? idOf(request) : undefined
      log('response', { request: id, method: request.method, resource, owner, status, error, bytes, durationMs })
    },
  }
}
