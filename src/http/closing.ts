import { EventEmitter } from 'node:events'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { ServerHttp2Stream } from 'node:http2'

/** Whether nothing more can be written: the host has ended the response, or the client has gone. */
export function isClosed(response: ServerResponse): boolean {
  return response.writableEnded || (streamOf(response)?.closed ?? response.destroyed)
}

/** Calls `listener` once nothing more can be written: at once if that is so already. */
export function whenClosed(response: ServerResponse, listener: () => void): void {
  if (isClosed(response)) listener()
  else onClose(response, listener)
}

/** Calls `listener` when the response is sent, or the client has gone. */
export function onClose(response: ServerResponse, listener: () => void): void {
  // What wraps `on` may add a listener to another stream, which may never close.
  EventEmitter.prototype.on.call(response, 'close', listener)
}

/** The stream under a message of HTTP/2; the compatibility API lacks what only that can do or tell. */
export function streamOf(message: IncomingMessage | ServerResponse): ServerHttp2Stream | undefined {
  return (message as { stream?: ServerHttp2Stream }).stream
}
