import { randomBytes } from 'node:crypto'
import type { HostRequest } from '../http/body.ts'
import type { ResponseEvent } from '../options.ts'
import { createThrottledLog, describeError, log } from './log.ts'

/** 1 to 128 visible ASCII characters. */
const VALID_ID = /^[\x21-\x7e]{1,128}$/
const ID_PREFIX = `${randomBytes(8).toString('hex')}-`
let generatedCount = 0
const REQUEST_ID: unique symbol = Symbol('request ID')

/**
 * Returns the ID of a request, which is part of the response and of the log lines: the ID that the client sent, if it's
 * valid, and otherwise a new one.
 */
export function getRequestId(request: HostRequest & { [REQUEST_ID]?: string | undefined }): string {
  return (request[REQUEST_ID] ??= readRequestId(request.rawHeaders) ?? `${ID_PREFIX}${++generatedCount}`)
}

function readRequestId(rawHeaders: readonly string[]): string | undefined {
  const values: string[] = []
  for (let i = 0; i < rawHeaders.length; i += 2) {
    // Comparing lengths first avoids converting every name to lower case.
    if (rawHeaders[i]!.length === 12 && rawHeaders[i]!.toLowerCase() === 'x-request-id') values.push(rawHeaders[i + 1]!)
  }
  return values.length === 1 && VALID_ID.test(values[0]!) ? values[0] : undefined
}

/** What the access log contains of a response, from the service, from an endpoint or from the HTTP server itself. */
export interface LoggedResponse extends Partial<Omit<ResponseEvent, 'request' | 'resource'>> {
  /** Undefined if the HTTP server couldn't parse the header. */
  readonly request: HostRequest | undefined
  readonly resource?: string | undefined
}

export function logResponse(event: LoggedResponse): void {
  const { request, resource, owner, status, error, bytes, complete, durationMs } = event
  log('response', {
    request: request && getRequestId(request),
    remoteAddress: request?.socket.remoteAddress,
    method: request?.method,
    resource,
    owner,
    statusCode: status,
    errorCode: error,
    bytes,
    complete,
    durationMs: durationMs === undefined ? undefined : Math.round(durationMs * 1000) / 1000,
  })
}

/**
 * Creates the function that logs failures. It's throttled, because every request fails on a full disk, and the log might
 * be on the same disk.
 */
export function createFailureLog(): (error: unknown, request: HostRequest) => void {
  const logFailure = createThrottledLog('failure')
  return (error, request) => logFailure(() => ({ request: getRequestId(request), reason: describeError(error) }))
}
