import { EventEmitter } from 'node:events'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { ServerHttp2Stream } from 'node:http2'
import type { Duplex } from 'node:stream'

/** The connection of a request. One that a serverless adapter makes up may have none. */
export function socketOf(request: IncomingMessage): Duplex | null {
  return request.socket
}

/** The stream under a message of HTTP/2. It can do and tell what the compatibility API cannot. */
export function streamOf(message: IncomingMessage | ServerResponse): ServerHttp2Stream | undefined {
  return (message as { stream?: ServerHttp2Stream }).stream
}

/**
 * Listens to an event of a response itself. A middleware may have put an `on` of its own in the place of that of Node,
 * which adds the listener to another stream, where the event never comes.
 */
export function listenTo(response: ServerResponse, event: 'close' | 'finish' | 'socket', listener: () => void): void {
  EventEmitter.prototype.on.call(response, event, listener)
}
