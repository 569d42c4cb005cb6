import type { Server } from 'node:net'
import type { OnAnswer } from '../http-server/answer.ts'
import type { Observer } from '../http-server/http-server.ts'
import type { CommonOptions, ResponseEvent } from '../options.ts'
import { describeError, log, throttle } from './log.ts'
import { idOf } from './request-ids.ts'

/** Listeners that log. Those that have nothing to log are undefined. */
export type Reports = Pick<CommonOptions, 'onError' | 'onResponse'> & Pick<Observer, 'onAnswer' | 'onRefusal'>

type Event = Omit<ResponseEvent, 'resource'> & { readonly resource: string | undefined }

/**
 * Makes the listeners that log failures, and with `accessLog` every response.
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

  function onResponse(event: Event): void {
    const { request, resource, owner, status, error, bytes, complete, durationMs } = event
    const fields = {
      request: idOf(request),
      method: request.method,
      resource,
      owner,
      status,
      error,
      bytes,
      complete,
      durationMs,
    }
    if (durationMs >= (slowMs ?? Infinity)) log('slow', fields)
    if (accessLog) log('response', fields)
  }

  const onAnswer: OnAnswer = (request, { status, error }, { bytes, complete }, startedAt, resource) => {
    const durationMs = performance.now() - startedAt
    onResponse({ request, resource, owner: undefined, status, error, bytes, complete, durationMs })
  }

  const isTold = accessLog || slowMs !== undefined
  return {
    onError(error, request) {
      latest = { request: idOf(request), error }
      reportFailure()
    },
    onResponse: isTold ? onResponse : undefined,
    onAnswer: isTold ? onAnswer : undefined,
    onRefusal: accessLog
      ? ({ status, error }, request) => log('refused', { request: idOf(request), status, error })
      : undefined,
  }
}

/** Logs, at most once a second, that connections were closed as soon as they came: `maxConnections` are open. */
export function reportDrops(server: Server): void {
  server.on(
    'drop',
    throttle((count) => log('connections-dropped', { count, max: server.maxConnections })),
  )
}
