import { EventEmitter } from 'node:events'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Http2ServerRequest, ServerHttp2Stream } from 'node:http2'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'

/** A request as the host got it: of HTTP/1, or of the compatibility API of HTTP/2. */
export type HostRequest = IncomingMessage | Http2ServerRequest

/** Returns the connection of a request, or null if a serverless adapter created the request without one. */
export const socketOf = (request: { socket?: Duplex | null }): Duplex | null => request.socket ?? null

/** Whether a request has a connection over which more of it can arrive. */
export function isConnected(request: IncomingMessage): boolean {
  const socket = socketOf(request) as Socket | null
  return socket !== null && !socket.pending
}

/** The stream under a message of HTTP/2. It can do and tell what the compatibility API cannot. */
export const streamOf = (message: IncomingMessage | ServerResponse): ServerHttp2Stream | undefined =>
  (message as { stream?: ServerHttp2Stream }).stream

/** Listens to a response itself: the `on` of a middleware may add the listener to another stream. */
export function addResponseListener(
  response: ServerResponse,
  event: 'close' | 'finish' | 'socket',
  listener: () => void,
): void {
  EventEmitter.prototype.on.call(response, event, listener)
}

export const isClosed = (response: ServerResponse): boolean =>
  response.writableEnded || (streamOf(response)?.closed ?? response.destroyed)

/** Whether a connection is lost. If a write fails, Node 20 and 22 go on for a moment before they destroy it. */
export const isDisconnected = (socket: Duplex | null): boolean => socket?.destroyed === true || Boolean(socket?.errored)

/** Whether a connection can still take a response. plant-store/server ends its side after its own error responses. */
export const isWritable = (socket: Duplex | null): boolean =>
  socket === null || !(socket.writableEnded || isDisconnected(socket))

/** Whether the body will stay incomplete: the client disconnected, half-closed or reset its stream, or the host did. */
export function isTruncated(request: IncomingMessage): boolean {
  const { complete, destroyed, readableEnded } = request as Partial<IncomingMessage>
  const isUnread = readableEnded === false
  const stream = streamOf(request)
  // Node emits `end` for a stream that was reset too, and calls its request complete. A stream that was reset in the
  // packet that completes its body can't be told from one that was reset before.
  if (stream !== undefined) return (stream.closed || (destroyed === true && isUnread)) && !stream.endAfterHeaders
  if (complete !== false || !isUnread) return false
  const socket = socketOf(request)
  return destroyed === true || socket?.readableEnded === true || !isWritable(socket)
}

export function onClose(response: ServerResponse, listener: () => void): void {
  if (isClosed(response)) listener()
  else addResponseListener(response, 'close', listener)
}

/** Closes a connection whose client must see that something is missing. TCP is reset, so the kernel drops the rest. */
export function resetConnection(socket: Socket): void {
  try {
    // Node cannot reset a socket that is ending, and would lose its descriptor.
    if (socket.writableEnded && socket.writableLength === 0) socket.destroy()
    else socket.resetAndDestroy()
  } catch {
    // It is no TCP connection: a local socket, or one under TLS.
    socket.destroy()
  }
}
