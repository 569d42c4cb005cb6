import { EventEmitter } from 'node:events'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Http2ServerRequest, ServerHttp2Stream } from 'node:http2'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'

/** A request as the host got it: of HTTP/1, or of the compatibility API of HTTP/2. */
export type HostRequest = IncomingMessage | Http2ServerRequest

/** The connection of a request. One that a serverless adapter makes up may have none. */
export const socketOf = (request: IncomingMessage): Duplex | null => request.socket

/** The stream under a message of HTTP/2. It can do and tell what the compatibility API cannot. */
export const streamOf = (message: IncomingMessage | ServerResponse): ServerHttp2Stream | undefined =>
  (message as { stream?: ServerHttp2Stream }).stream

/** Listens to a response itself: the `on` of a middleware may add the listener to another stream. */
export function listenTo(response: ServerResponse, event: 'close' | 'finish' | 'socket', listener: () => void): void {
  EventEmitter.prototype.on.call(response, event, listener)
}

export const isClosed = (response: ServerResponse): boolean =>
  response.writableEnded || (streamOf(response)?.closed ?? response.destroyed)

/** Whether a connection is lost. If a write fails, Node 20 and 22 go on for a moment before they destroy it. */
export const isLost = (socket: Duplex | null): boolean => socket?.destroyed === true || Boolean(socket?.errored)

export function whenClosed(response: ServerResponse, listener: () => void): void {
  if (isClosed(response)) listener()
  else listenTo(response, 'close', listener)
}

/** Closes a connection whose client must see that something is missing. TCP is reset, so the kernel drops the rest. */
export function reset(socket: Socket): void {
  try {
    // Node cannot reset a socket that is ending, and would lose its descriptor.
    if (socket.writableEnded && socket.writableLength === 0) socket.destroy()
    else socket.resetAndDestroy()
  } catch {
    // It is no TCP connection: a local socket, or one under TLS.
    socket.destroy()
  }
}
