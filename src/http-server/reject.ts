import { STATUS_CODES, type IncomingMessage, type ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'
import { HTTP_ERRORS, type HttpError } from '../legacy/http/errors.ts'
import { respond, type BaseResponseEvent, type HttpResponse } from '../legacy/http/respond.ts'
import { addResponseListener } from '../legacy/http/transport.ts'
import { arrivedAt } from '../legacy/http/request-queue.ts'
import { chain } from '../legacy/maybe-promise.ts'
import { clearTimeout, performance, setTimeout } from '../legacy/timers.ts'

/**
 * How long a rejected client has to read the response and close the connection before the socket is destroyed.
 * Destroying the socket may reset the connection, because data that the client is still sending isn't read.
 */
const LINGER_MS = 1000
/**
 * Limits how many connections rejected clients occupy, so that a few clients that reconnect in a loop can't use up all
 * of them.
 */
const MAX_LINGERING = 100
/** Oldest first. It's an array, because closed sockets in a `Set` would survive several minor garbage collections. */
const lingering: Duplex[] = []

export const isTimeout = (error: NodeJS.ErrnoException): boolean => error.code === 'ERR_HTTP_REQUEST_TIMEOUT'

export function toHttpError(error: NodeJS.ErrnoException): HttpError {
  if (isTimeout(error)) return HTTP_ERRORS.requestTimeout
  return error.code === 'HPE_HEADER_OVERFLOW' ? HTTP_ERRORS.headersTooLarge : HTTP_ERRORS.malformedRequest
}

/** Writes an error response directly to a socket, and closes the connection. */
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

/** Calls `rejectNow` immediately, or once the pending response on the connection is finished. */
export function rejectAfterResponse(response: ServerResponse | undefined, rejectNow: () => void): void {
  if (response === undefined || response.closed) rejectNow()
  else response.once('close', rejectNow)
}

/**
 * Rejects a request whose body is malformed or late. A listener that doesn't need the body can still respond, so the
 * request is rejected only
 *
 * - when the listener reads the body (immediately if it already has),
 * - or if the listener has neither read nor responded within `graceMs`, counted from the request's turn on the
 *   connection.
 *
 * If the listener has already sent the head of its response, the connection closes without a rejection.
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
    // The listener must not respond anymore, because `onResponse` would report a response that was never sent.
    response.destroyed = true
    rejectNow()
  }
  const hasStartedReading = req.readableFlowing !== null || req.readableDidRead
  if (hasStartedReading) return rejectOrClose()
  // If the listener responds without reading the body, Node reads it after the response.
  beforeFirstRead(req, rejectOrClose)
  const startGraceTimer = (): void => {
    const timer = setTimeout(() => response.headersSent || rejectOrClose(), graceMs).unref()
    // The timer would keep the request in memory, so a client that reconnects in a loop could fill the memory.
    socket.once('close', () => clearTimeout(timer))
  }
  // A response has no socket until the earlier responses on the connection are sent.
  if (response.socket === null) addResponseListener(response, 'socket', startGraceTimer)
  else startGraceTimer()
}

/**
 * Calls `callback` when a listener starts to read a request. Wraps `read`, which Node calls for every way of reading.
 * The `resume` event isn't enough: Node doesn't emit it for `readable` listeners or async iterators.
 */
export function beforeFirstRead(request: IncomingMessage, callback: () => void): void {
  const read = request.read.bind(request)
  request.read = (size) => {
    request.read = read
    callback()
    return read(size) as unknown
  }
}

/**
 * Half-closes a connection, and destroys it only after LINGER_MS, because a client whose connection is reset may not
 * see the response.
 */
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

/** Sends a response and reports it to `onResponse`. @param resource the route of the request, if any */
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
