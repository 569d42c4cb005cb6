import type { Server } from 'node:net'
import { readBearerToken } from '../http/bearer.ts'
import { ERRORS, HTTP_ERRORS } from '../http/errors.ts'
import { readHeaderFields } from '../http/header-fields.ts'
import type { AnswerEvent } from '../http/respond.ts'
import type { Observer } from '../http-server/http-server.ts'
import type { CommonOptions } from '../options.ts'
import { describeError, log, throttle } from './log.ts'
import { idOf } from './requests.ts'

/** Listeners that log. Those that have nothing to log are undefined. */
export interface Reports extends Pick<CommonOptions, 'onError'>, Pick<Observer, 'onRefusal'> {
  readonly onResponse: ((event: AnswerEvent & { readonly owner?: string | undefined }) => void) | undefined
}

const MALFORMED_TOKEN =
  'A bearer token has characters that RFC 6750 does not allow, such as ":" or "|"; every such request gets 401. ' +
  'This is logged once.'

export function createReports(accessLog: boolean, slowMs?: number): Reports {
  let hasReportedMalformedToken = false
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
    if (!accessLog) return
    log('response', fields)
    if (hasReportedMalformedToken || errorCode !== ERRORS.tokenRefused.error || !hasMalformedToken(request)) return
    hasReportedMalformedToken = true
    log('warning', { request: asked.request, reason: MALFORMED_TOKEN })
  }

  const onRefusal: Reports['onRefusal'] = ({ status: statusCode, error: errorCode }, request) => {
    log('refused', { request: idOf(request), remoteAddress: request.socket.remoteAddress, statusCode, errorCode })
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

/** Whether the only Authorization of a request is a bearer token with the wrong syntax, unlike one that is unknown. */
const hasMalformedToken = ({ rawHeaders }: { readonly rawHeaders: readonly string[] }): boolean =>
  readBearerToken(readHeaderFields(rawHeaders)) === HTTP_ERRORS.tokenRefused

export function reportDrops(server: Server): void {
  const report = throttle((count) => log('connections-dropped', { count, max: server.maxConnections }))
  server.on('drop', report)
}
