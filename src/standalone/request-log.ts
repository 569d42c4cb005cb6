import type { Server } from 'node:net'
import { readBearerToken } from '../http/bearer.ts'
import { ERRORS, HTTP_ERRORS } from '../http/errors.ts'
import { readHeaderFields } from '../http/header-fields.ts'
import type { BaseResponseEvent } from '../http/respond.ts'
import type { Observer } from './http-server.ts'
import type { CommonOptions } from '../options.ts'
import { describeError, log, throttle } from './log.ts'
import { getRequestId } from './requests.ts'

/** Functions that log requests. A function is undefined if the settings don't enable its log lines. */
interface RequestLog extends Pick<CommonOptions, 'onError'>, Pick<Observer, 'onRejection'> {
  readonly onResponse: ((event: BaseResponseEvent & { readonly owner?: string | undefined }) => void) | undefined
}

const MALFORMED_TOKEN_MESSAGE =
  'A client sent a bearer token with characters that RFC 6750 does not allow, such as ":" or "|". ' +
  'Requests with such a token get 401. This warning is logged only once.'

/**
 * Creates the observers that log requests.
 * @param accessLog whether to log every response
 * @param slowMs the duration in milliseconds from which a response is logged as slow; if absent, no response is
 */
export function createRequestLog(accessLog: boolean, slowMs?: number): RequestLog {
  let hasReportedMalformedToken = false
  let latestFailure: { readonly request: string; readonly error: unknown } | undefined
  // Throttled because on a full disk every request fails, and the log might be on the same disk.
  const logFailure = throttle((count) => {
    const { request, error } = latestFailure!
    latestFailure = undefined
    log('failure', { request, reason: describeError(error), count })
  })

  const onResponse: RequestLog['onResponse'] = (event) => {
    const { request, resource, owner, status: statusCode, error: errorCode, bytes, complete, durationMs } = event
    const { method, socket } = request
    const requestFields = {
      request: getRequestId(request),
      remoteAddress: socket.remoteAddress,
      method,
      resource,
      owner,
    }
    const fields = { ...requestFields, statusCode, errorCode, bytes, complete, durationMs }
    if (durationMs >= (slowMs ?? Infinity)) log('slow', fields)
    if (!accessLog) return
    log('response', fields)
    if (hasReportedMalformedToken || errorCode !== ERRORS.invalidToken.error || !hasMalformedToken(request)) return
    hasReportedMalformedToken = true
    log('warning', { request: requestFields.request, reason: MALFORMED_TOKEN_MESSAGE })
  }

  const onRejection: RequestLog['onRejection'] = ({ status: statusCode, error: errorCode }, request) => {
    log('refused', {
      request: request && getRequestId(request),
      remoteAddress: request?.socket.remoteAddress,
      statusCode,
      errorCode,
    })
  }

  return {
    onError(error, request) {
      latestFailure = { request: getRequestId(request), error }
      logFailure()
    },
    onResponse: accessLog || slowMs !== undefined ? onResponse : undefined,
    onRejection: accessLog ? onRejection : undefined,
  }
}

/** Returns whether the bearer token of a request has invalid syntax, as opposed to being unknown. */
const hasMalformedToken = ({ rawHeaders }: { readonly rawHeaders: readonly string[] }): boolean =>
  readBearerToken(readHeaderFields(rawHeaders)) === HTTP_ERRORS.invalidToken

/** Logs connections that Node drops because `maxConnections` is reached. */
export function logDroppedConnections(server: Server): void {
  const logDrop = throttle((count) => log('connections-dropped', { count, max: server.maxConnections }))
  server.on('drop', logDrop)
}
