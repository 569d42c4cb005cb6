import type { ServerResponse } from 'node:http'
import { listenTo, streamOf } from './transport.ts'

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
  listenTo(response, 'close', listener)
}
