import type { Server } from 'node:net'
import type { AnswerEvent } from '../http/respond.ts'
import type { Observer } from '../http-server/http-server.ts'
import type { CommonOptions } from '../options.ts'
import { describeError, log, throttle } from './log.ts'
import { idOf } from './requests.ts'

/** Listeners that log. Those that have nothing to log are undefined. */
export interface Reports extends Pick<CommonOptions, 'onError'>, Pick<Observer, 'onRefusal'> {
  readonly onResponse: ((event: AnswerEvent & { readonly owner?: string | undefined }) => void) | undefined
}

export function createReports(accessLog: boolean, slowMs?: number): Reports {
  let latest: { readonly request: string; readonly error: unknown } | undefined
  // A full disk fails every request, and the log may be on it.
  const reportFailure = throttle((count) => {
    const { request, error } = latest!
    latest = undefined
    log('failure', { request, reason: describeError(error), count })
  })

  const onResponse: Reports['onResponse'] = (event) => {
    const { request, resource, owner, status: statusCode, error: errorCode, bytes, complete, durationMs } = event
    const { method, socket } = request
    const asked = { request: idOf(request), remoteAddress: socket.remoteAddress, method, resource, owner }
    const fields = { ...asked, statusCode, errorCode, bytes, complete, durationMs }
    if (durationMs >= (slowMs ?? Infinity)) log('slow', fields)
    if (accessLog) log('response', fields)
  }

  const onRefusal: Reports['onRefusal'] = ({ status: statusCode, error: errorCode }, request) => {
    log('refused', { request: idOf(request), remoteAddress: request.socket?.remoteAddress, statusCode, errorCode })
  }

  return {
    onError(error, request) {
      latest = { request: idOf(request), error }
      reportFailure()
    },
    onResponse: accessLog || slowMs !== undefined ? onResponse : undefined,
    onRefusal: accessLog ? onRefusal : undefined,
  }
}

export function reportDrops(server: Server): void {
  const report = throttle((count) => log('connections-dropped', { count, max: server.maxConnections }))
  server.on('drop', report)
}
