import { STATUS_CODES } from 'node:http'
import type { Duplex } from 'node:stream'
import { HttpError } from '../http/errors.ts'
import { errorResponse } from '../http/respond.ts'

/** How long a client may go on sending after it was refused, so that it sees the response before a reset. */
const LINGER_MS = 1000

/** Whether a request did not arrive in time. */
export function isTimeout(error: NodeJS.ErrnoException): boolean {
  return error.code === 'ERR_HTTP_REQUEST_TIMEOUT'
}

/** Says what is wrong with a request that `node:http` could not read. */
export function toHttpError(error: Error): HttpError {
  if (isTimeout(error)) return new HttpError('requestTimeout')
  const isTooLarge = (error as NodeJS.ErrnoException).code === 'HPE_HEADER_OVERFLOW'
  return new HttpError(isTooLarge ? 'tooManyFields' : 'malformedRequest')
}

/**
 * Responds on a bare connection and closes it.
 * @param fields further header fields: name, value, name, value…
 */
export function refuse(socket: Duplex, error: HttpError, fields: readonly string[]): void {
  const { body } = errorResponse(error)
  const head = [
    `HTTP/1.1 ${error.status} ${STATUS_CODES[error.status]}`,
    'Content-Type: application/json',
    `Content-Length: ${body.length}`,
    `Date: ${new Date().toUTCString()}`,
    'Connection: close',
  ]
  for (let i = 0; i < fields.length; i += 2) head.push(`${fields[i]!}: ${fields[i + 1]!}`)
  socket.write(`${head.join('\r\n')}\r\n\r\n${body}`, 'latin1')
  closeGently(socket)
}

/** Closes a connection after what was written to it. What still arrives is read, or the system would reset it. */
export function closeGently(socket: Duplex): void {
  const timer = setTimeout(() => socket.destroy(), LINGER_MS)
  socket.once('close', () => clearTimeout(timer))
  socket.resume()
  socket.end()
}
