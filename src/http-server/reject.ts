import { STATUS_CODES, type IncomingMessage, type ServerResponse } from 'node:http'
import { isIPv6, type Socket } from 'node:net'
import { setTimeout } from 'node:timers'
import { HTTP_ERRORS, HttpError } from '../http/errors.ts'

export interface Connection {
  readonly socket: Socket
  /** The response to the latest request that has arrived. */
  latestResponse: ServerResponse | undefined
  /** Whether `node:http` has rejected a request. Nothing more is read from the connection then. */
  isRejected: boolean
}

/** The request is undefined if its header couldn't be parsed. */
export type OnRejection = (error: HttpError, request: IncomingMessage | undefined) => void

/**
 * Responds to a request that `node:http` rejects, after the responses to all earlier requests, and closes the
 * connection. If the body is malformed or late, but the listener has already begun its response, that is the only one.
 */
export function rejectConnection(
  connection: Connection,
  reason: NodeJS.ErrnoException,
  onRejection?: OnRejection,
): void {
  // Bytes that Node has already read can contain another error.
  if (connection.isRejected) return
  connection.isRejected = true
  const { socket, latestResponse: latest } = connection
  // Node and the service resume the connection when a request or response is complete.
  socket.on('resume', () => socket.pause()).pause()
  const rejected = latest?.req.complete === false ? latest : undefined
  const error = toHttpError(reason)

  function reject(): void {
    // Browsers open connections in advance. Without a request, there is nothing to respond to.
    if (!socket.writable || socket.bytesRead === 0) return void socket.destroy()
    const { status, body } = error
    close(
      `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\nDate: ${new Date().toUTCString()}\r\nConnection: close\r\n` +
        'Cache-Control: no-store\r\nContent-Type: application/json\r\n' +
        `Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
    )
    onRejection?.(error, rejected?.req)
  }
  function close(text = ''): void {
    socket.end(text)
    // Destroying the socket now could reset the connection before the client has read the response.
    setTimeout(() => socket.destroy(), 1000).unref()
  }

  if (rejected === undefined) return afterClose(latest, reject)
  if (rejected.headersSent) return afterClose(rejected, close)
  // From now on, the listener can't respond.
  rejected.destroyed = true
  // Node assigns the socket once all earlier responses have been sent.
  if (rejected.socket === null) rejected.once('socket', reject)
  else reject()
}

function afterClose(response: ServerResponse | undefined, callback: () => void): void {
  if (response?.closed === false) response.once('close', callback)
  else callback()
}

function toHttpError({ code }: NodeJS.ErrnoException): HttpError {
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT') return HTTP_ERRORS.requestTimeout
  return code === 'HPE_HEADER_OVERFLOW' ? HTTP_ERRORS.headersTooLarge : HTTP_ERRORS.malformedRequest
}

export const INVALID_HOST = new HttpError('malformedRequest', 'The request must have one Host field with a valid host.')

/**
 * Whether a request has one Host field with a valid host (RFC 9112 section 3.2), which HTTP/1.0 doesn't require. An http
 * URI must have a host, so the value can't be empty (RFC 9110 section 4.2.1).
 */
export function hasValidHost({ httpVersionMinor, rawHeaders }: IncomingMessage): boolean {
  const hosts = rawHeaders.filter((_, i) => i % 2 === 1 && /^host$/i.test(rawHeaders[i - 1]!))
  if (hosts.length !== 1) return hosts.length === 0 && httpVersionMinor === 0
  if (/^(?:[\w.~!$&'()*+,;=-]|%[0-9a-f]{2})+(?::[0-9]*)?$/i.test(hosts[0]!)) return true
  const [, address] = /^\[([0-9a-f:.]+)(?:%[\w.~%-]+)?\](?::[0-9]*)?$/i.exec(hosts[0]!) ?? []
  return address !== undefined && isIPv6(address)
}
