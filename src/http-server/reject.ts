import { STATUS_CODES, type IncomingMessage, type ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'
import { HTTP_ERRORS, type HttpError } from '../http/errors.ts'
import { respond, type BaseResponseEvent, type HttpResponse } from '../http/respond.ts'
import { addResponseListener } from '../http/transport.ts'
import { arrivedAt } from '../http/request-queue.ts'
import { chain } from '../maybe-promise.ts'
import { clearTimeout, performance, setTimeout } from '../timers.ts'

/** How long a client that was refused has to see the response. What it still sends is not read, so a reset follows. */
const LINGER_MS = 1000
/** How many refused clients have that at once. Otherwise a few that come again and again would take all connections. */
const MAX_LINGERING = 100
/** The oldest first. In a `Set`, closed ones would outlive many collections of young objects. */
const lingering: Duplex[] = []

export const isTimeout = (error: NodeJS.ErrnoException): boolean => error.code === 'ERR_HTTP_REQUEST_TIMEOUT'

export function toHttpError(error: NodeJS.ErrnoException): HttpError {
  if (isTimeout(error)) return HTTP_ERRORS.requestTimeout
  return error.code === 'HPE_HEADER_OVERFLOW' ? HTTP_ERRORS.headersTooLarge : HTTP_ERRORS.malformedRequest
}

export function sendRejection(socket: Duplex, error: HttpError, fields: readonly string[]): void {
  const { body } = error
  const head = [
    `HTTP/1.1 ${error.status} ${STATUS_CODES[error.status]}`,
    'Content-Type: application/json',
    `Content-Length: ${body.length}`,
    'Cache-Control: no-store',
    `Date: ${new Date().toUTCString()}`,
    'Connection: close',
  ]
  for (let i = 0; i < fields.length; i += 2) head.push(`${fields[i]!}: ${fields[i + 1]!}`)
  socket.write(`${head.join('\r\n')}\r\n\r\n${body}`, 'latin1')
  closeGracefully(socket)
}

export function rejectAfterResponse(response: ServerResponse | undefined, rejectNow: () => void): void {
  if (response === undefined || response.closed) rejectNow()
  else response.once('close', rejectNow)
}

/**
 * Rejects a request whose body is malformed or late, as soon as its listener reads the body: until then, the listener can
 * respond without it. After `graceMs` a request is rejected whose listener has neither read nor responded.
 */
export function rejectOnBodyRead(
  response: ServerResponse,
  socket: Duplex,
  graceMs: number,
  rejectNow: () => void,
): void {
  const { req } = response
  function rejectOrClose(): void {
    if (response.headersSent) return closeGracefully(socket)
    // Otherwise the listener could still respond, and `onResponse` would report a response that was never sent.
    response.destroyed = true
    rejectNow()
  }
  if (req.readableFlowing !== null || req.readableDidRead) return rejectOrClose()
  // After a response, Node itself reads the rest of the body.
  beforeFirstRead(req, rejectOrClose)
  const startGraceTimer = (): void => {
    const timer = setTimeout(() => response.headersSent || rejectOrClose(), graceMs).unref()
    // Otherwise the timer would keep the request in memory, and a client could fill the memory with such requests.
    socket.once('close', () => clearTimeout(timer))
  }
  // A request that waits for its turn has no socket, and earlier requests are still owed a response.
  if (response.socket === null) addResponseListener(response, 'socket', startGraceTimer)
  else startGraceTimer()
}

/**
 * Calls back when a listener starts to read a request. However it does so, Node calls `read` of the request. `resume`
 * isn't emitted for `readable` listeners and async iterators.
 */
export function beforeFirstRead(request: IncomingMessage, callback: () => void): void {
  const read = request.read.bind(request)
  request.read = (size) => {
    request.read = read
    callback()
    return read(size) as unknown
  }
}

function closeGracefully(socket: Duplex): void {
  const timer = setTimeout(() => socket.destroy(), LINGER_MS)
  lingering.push(socket)
  socket.once('close', () => {
    clearTimeout(timer)
    const index = lingering.indexOf(socket)
    if (index !== -1) lingering.splice(index, 1)
  })
  socket.end()
  if (lingering.length > MAX_LINGERING) lingering.shift()!.destroy()
}

export type OnResponse = (event: BaseResponseEvent) => void

/** Sends a response, and tells of it; `resource` is the path that the request names, if there is one. */
export function sendResponse(
  request: IncomingMessage,
  response: ServerResponse,
  result: HttpResponse,
  onResponse?: OnResponse,
  resource?: string,
): void {
  const startedAt = arrivedAt(response)
  void chain(respond(request, response, result), ({ bytes, complete }) => {
    const { status, error } = result
    const durationMs = performance.now() - startedAt
    onResponse?.({ request, resource, status, error, bytes, complete, durationMs })
  })
}
