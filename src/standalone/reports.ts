import type { IncomingMessage, ServerResponse } from 'node:http'
import type { ErrorCode } from '../http/errors.ts'
import type { ResponseEvent } from '../options.ts'
import type { Observer } from '../http-server/http-server.ts'
import { describeError, log } from './log.ts'
import { idOf } from './request-ids.ts'
import { throttle } from './throttle.ts'

/** Is told of a response of the service, or of the program. */
export type OnResponse = (event: Omit<ResponseEvent, 'resource'> & { readonly resource: string | undefined }) => void

/** Listeners that log. Each is there only if it has something to log. */
export interface Reports {
  readonly service: {
    readonly onError: (error: unknown, request: IncomingMessage) => void
    readonly onResponse?: OnResponse
  }
  readonly server: Observer
  /** Is told that a request is handed to what calls `onResponse`. The server itself answers the others. */
  readonly onServe?: (response: ServerResponse) => void
}

/**
 * Makes the listeners that log failures, and with `accessLog` every response.
 * @param slowMs a response that took at least so long is logged as slow
 */
export function createReports(accessLog: boolean, slowMs?: number): Reports {
  const slowestMs = slowMs ?? Infinity
  let latest: { readonly request: string; readonly error: unknown } | undefined
  // A full disk fails every request, and the log may be on it.
  const reportFailure = throttle((count) => {
    const { request, error } = latest!
    latest = undefined
    log('failure', { request, reason: describeError(error), count })
  })

  function onError(error: unknown, request: IncomingMessage): void {
    latest = { request: idOf(request), error }
    reportFailure()
  }

  const onResponse: OnResponse = (event) => {
    const { request, resource, owner, status, error, bytes, complete, durationMs } = event
    const { method } = request
    const fields = { request: idOf(request), method, resource, owner, status, error, bytes, complete, durationMs }
    if (durationMs >= slowestMs) log('slow', fields)
    if (accessLog) log('response', fields)
  }

  const service = accessLog || slowMs !== undefined ? { onError, onResponse } : { onError }
  if (!accessLog) return { service, server: {} }

  /** When each request began that nobody has been handed. */
  const unserved = new WeakMap<ServerResponse, number>()

  function onRequest(request: IncomingMessage, response: ServerResponse): void {
    unserved.set(response, performance.now())
    response.once('close', () => {
      const startedAt = unserved.get(response)
      if (startedAt === undefined || !response.headersSent) return
      const { statusCode: status, writableFinished: complete } = response
      // Of the errors that share a status, the server itself has only the first.
      const error = status < 400 ? undefined : ((status * 100) as ErrorCode)
      const bytes = request.method === 'HEAD' ? 0 : Number(response.getHeader('Content-Length') ?? 0)
      const durationMs = performance.now() - startedAt
      onResponse({ request, resource: undefined, owner: undefined, status, error, bytes, complete, durationMs })
    })
  }

  return {
    service,
    server: {
      onRequest,
      onRefusal: ({ status, error }, request) => log('refused', { request: idOf(request), status, error }),
    },
    onServe: (response) => unserved.delete(response),
  }
}
