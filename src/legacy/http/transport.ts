import { EventEmitter } from 'node:events'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Http2ServerRequest, ServerHttp2Stream } from 'node:http2'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'

/** A request as the host received it: from HTTP/1, or from the compatibility API of HTTP/2. */
export type HostRequest = IncomingMessage | Http2ServerRequest

/** Returns the connection of a request, or null if a serverless adapter created the request without one. */
export const socketOf = (request: { socket?: Duplex | null }): Duplex | null => request.socket ?? null

/** Whether a request has an actual connection. Requests in tests may have a Socket that was never connected. */
export function isConnected(request: IncomingMessage): boolean {
  const socket = socketOf(request) as Socket | null
  return socket !== null && !socket.pending
}

/** Returns the HTTP/2 stream of a message, which has more methods and state than the compatibility API. */
export const streamOf = (message: IncomingMessage | ServerResponse): ServerHttp2Stream | undefined =>
  (message as { stream?: ServerHttp2Stream }).stream

/** Adds a listener to the response itself. Middleware might have replaced `on` to add listeners to another stream. */
export function addResponseListener(
  response: ServerResponse,
  event: 'close' | 'finish' | 'socket',
  listener: () => void,
): void {
  EventEmitter.prototype.on.call(response, event, listener)
}

export const isClosed = (response: ServerResponse): boolean =>
  response.writableEnded || (streamOf(response)?.closed ?? response.destroyed)

/** Whether a connection is lost. Node 20 and 22 don't destroy a socket immediately after a failed write. */
export const isDisconnected = (socket: Duplex | null): boolean => socket?.destroyed === true || Boolean(socket?.errored)

/** Whether a response can still be sent. When plant-store/server sends its own error response, it ends the socket. */
export const isWritable = (socket: Duplex | null): boolean =>
  socket === null || !(socket.writableEnded || isDisconnected(socket))

/** Whether the body is incomplete and will remain so: either side closed the connection, or reset the HTTP/2 stream. */
export function isTruncated(request: IncomingMessage): boolean {
  const { complete, destroyed, readableEnded } = request as Partial<IncomingMessage>
  const isUnread = readableEnded === false
  const stream = streamOf(request)
  // For a stream that was reset, Node emits `end` and reports the request as complete. If the packet that completes the
  // body also resets the stream, there's no way to tell that the body was complete.
  if (stream !== undefined) return (stream.closed || (destroyed === true && isUnread)) && !stream.endAfterHeaders
  if (complete !== false || !isUnread) return false
  const socket = socketOf(request)
  return destroyed === true || socket?.readableEnded === true || !isWritable(socket)
}

export function onClose(response: ServerResponse, listener: () => void): void {
  if (isClosed(response)) listener()
  else addResponseListener(response, 'close', listener)
}

/**
 * Closes a connection so that its client notices that data is missing. A TCP connection is reset, so that the kernel
 * discards data that it hasn't sent yet.
 */
export function resetConnection(socket: Socket): void {
  try {
    // Node can't reset a socket that is ending, and would leak its file descriptor.
    if (socket.writableEnded && socket.writableLength === 0) socket.destroy()
    else socket.resetAndDestroy()
  } catch {
    // Not a TCP connection: a Unix socket or a TLS socket.
    socket.destroy()
  }
}
